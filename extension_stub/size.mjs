/**
 * Prints how large the stub is, in bytes, and fails where it has outgrown its budget:
 *
 *     node extension_stub/size.mjs
 *
 * `whole`: every module. `index`, `content`: what a worker or page, and a content script, load. As they
 * lie here, with comments; and compressed, which comes near to what a minified copy would have.
 */

import { readFileSync, readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const FOLDER = new URL('./sidekeep/', import.meta.url);

/** Bytes of gzip that each may have. */
const BUDGET = { whole: 90_000, index: 85_000, content: 30_000 };

const read = (name) => readFileSync(new URL(name, FOLDER), 'utf8');

/** The modules that a module loads, itself first. */
function loaded(name, seen = new Set()) {
  if (seen.has(name)) return seen;
  seen.add(name);
  for (const [, other] of read(name).matchAll(/^(?:import|export)[^;]*? from '\.\/([\w.]+)';/gm)) loaded(other, seen);
  return seen;
}

const parts = {
  whole: readdirSync(FOLDER).filter((name) => name.endsWith('.js')),
  index: [...loaded('index.js')],
  content: [...loaded('content.js')],
};
let outgrown = false;
for (const [what, names] of Object.entries(parts)) {
  const text = names.map(read).join('');
  const packed = gzipSync(text, { level: 9 }).length;
  outgrown ||= packed > BUDGET[what];
  const size = `${String(Buffer.byteLength(text)).padStart(7)} bytes, ${String(packed).padStart(6)} as gzip`;
  console.log(`${what.padEnd(8)} ${String(names.length).padStart(3)} modules ${size} (budget ${BUDGET[what]})`);
}
if (outgrown) {
  console.error('The stub has outgrown its budget.');
  process.exitCode = 1;
}
