// @ts-check
/**
 * A model behind a server that speaks the chat completions of OpenAI, streamed.
 */

/** What the server refused a request with: `turn.rescue` takes it as it is. */
export class ModelError extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, code?: unknown}} [more]
   */
  constructor(message, { status, code } = {}) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** @typedef {{endpoint: string, model: string, apiKey: string, systemPrompt: string}} ModelSettings */

/**
 * Sends messages and waits for the whole answer.
 * @param {ModelSettings} settings
 * @param {unknown[]} messages
 * @param {{signal: AbortSignal, onText?: (text: string) => void}} options `onText` gets the whole
 *   text so far
 * @returns {Promise<string>}
 * @throws {ModelError} if the server refuses, or the answer ends early or is empty
 */
export async function answerOf({ endpoint, model, apiKey }, messages, { signal, onText = () => {} }) {
  const response = await fetch(`${endpoint.replace(/\/+$/, '')}/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify({ model, messages, stream: true }),
    signal,
  });
  if (!response.ok || !response.body) throw await refusalOf(response);
  let text = '';
  let finished = false;
  for await (const data of eventsOf(response.body)) {
    if (data === '[DONE]') {
      finished = true;
      break;
    }
    const { choices, error } = JSON.parse(data);
    if (error) throw new ModelError(String(error.message ?? error), error);
    const [choice] = choices ?? [];
    text += choice?.delta?.content ?? '';
    finished ||= Boolean(choice?.finish_reason);
    onText(text);
  }
  if (!finished) throw new ModelError('The answer ended early.');
  if (text.trim() === '') throw new ModelError('The model gave no answer.');
  return text;
}

/**
 * @param {Response} response
 * @returns {Promise<ModelError>}
 */
async function refusalOf(response) {
  const { status } = response;
  const body = await response.text();
  try {
    const { message, code } = JSON.parse(body).error;
    return new ModelError(String(message), { status, code });
  } catch {
    return new ModelError(`The server answered ${status}: ${body.slice(0, 300)}`, { status });
  }
}

/**
 * The data of server-sent events.
 * @param {ReadableStream<Uint8Array>} body
 */
async function* eventsOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += decoder.decode(value, { stream: !done });
      const lines = rest.split(/\r?\n/);
      rest = done ? '' : (lines.pop() ?? '');
      for (const line of lines) if (line.startsWith('data:')) yield line.slice(5).trim();
      if (done) return;
    }
  } finally {
    await reader.cancel();
  }
}
