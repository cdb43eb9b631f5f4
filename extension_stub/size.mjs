/**
 * Prints how large the stub is, in bytes, and fails where it has outgrown its budget:
 *
 *     node extension_stub/size.mjs
 *
 * `whole`: every module. `index`, `content`: what a worker or page, and a content script, load. As they
 * lie here; without the comments that explain them; and that compressed, which the budget is for.
 */

import { readFileSync, readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const FOLDER = new URL('./sidekeep/', import.meta.url);

/** Bytes that each may have, without comments and compressed. */
const BUDGET = { whole: 60_000, index: 54_000, content: 20_000 };

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
  const code = text.replace(/^\s*\/\*\*[^]*?\*\/\n/gm, '');
  const packed = gzipSync(code, { level: 9 }).length;
  outgrown ||= packed > BUDGET[what];
  const [raw, bare] = [text, code].map((one) => Buffer.byteLength(one));
  console.log(
    `${what}: ${names.length} modules, ${raw} bytes, ${bare} without comments, ${packed} of these as gzip` +
      ` (budget ${BUDGET[what]})`,
  );
}
if (outgrown) {
  console.error('The stub has outgrown its budget.');
  process.exitCode = 1;
}
