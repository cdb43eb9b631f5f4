// @ts-check
/**
 * One question to the model, from its turn to the answer that is stored, or to what came of it.
 *
 * Rules of this module:
 * - The question is stored before it is sent; whatever happens then, it stays exactly one entry.
 * - A request that was too large is made smaller and sent again, once.
 */

import { answerOf } from './model.js';

/** @typedef {import('../../sidekeep/index.d.ts').Turn} Turn */
/** @typedef {import('../../sidekeep/index.d.ts').TurnOptions} TurnOptions */
/** @typedef {import('./model.js').ModelSettings} ModelSettings */

/**
 * @param {ModelSettings} settings
 * @param {(options: TurnOptions) => Promise<Turn>} begin begins, edits or regenerates
 * @param {{signal: AbortSignal, onText: (text: string) => void, onNote: (note: string) => void}} options
 *   `onText` gets the whole text so far
 * @returns {Promise<void>} fulfilled when the answer is stored
 * @throws what the host or the model refused, after the turn was marked so
 */
export async function ask(settings, begin, { signal, onText, onNote }) {
  const turn = await begin({ target: { style: 'chat', system: settings.systemPrompt || undefined } });
  if (turn.left.images > 0) onNote(`${turn.left.images} pictures were too large or too many and were left out.`);
  onText('');
  let sofar = '';
  const send = () =>
    answerOf(settings, turn.request.messages, {
      signal,
      onText: (text) => {
        sofar = text;
        turn.progress(text);
        onText(text);
      },
    });
  let answer;
  try {
    answer = await send().catch(async (error) => {
      if (signal.aborted) throw error;
      const { request, stubbed } = await turn.rescue(error);
      if (request === null) throw error;
      onNote(`Too long for the model: sent again without the text of ${stubbed.length} attachments.`);
      sofar = '';
      onText('');
      return send();
    });
  } catch (error) {
    await turn.fail(signal.aborted ? 'abort' : 'error', sofar);
    throw error;
  }
  await turn.complete(answer);
}

const SUMMARY = 'Summarise the text. Keep its headings, numbers, names and dates.';

/**
 * A model's summary of a text, as `keep.attachments.condense` asks for it.
 * @param {ModelSettings} settings
 * @returns {import('../../sidekeep/index.d.ts').Summarize}
 */
export function summaries(settings) {
  return (text, { merge, signal }) => {
    const system = merge ? `${SUMMARY} It consists of summaries of its segments; make one of them.` : SUMMARY;
    const messages = [{ role: 'system', content: system }, { role: 'user', content: text }];
    return answerOf(settings, messages, { signal });
  };
}
