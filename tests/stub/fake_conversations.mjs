/**
 * A live conversation and its journal in a host's memory, beside fake_host.mjs: what the stub's tests of
 * `keep.history` and of its events need, no more.
 */

import { fakeBrowser } from './fake_host.mjs';

/** What outlives a host process. */
export class FakeConversation {
  epoch = 'first';
  revision = 0;
  nextId = 1;
  /** @type {{id: string, entry: unknown}[]} */
  list = [];
  /** notifications, each with its revision */
  journal = [];
  /** parameters of every watch */
  watches = [];
  /** the oldest revision that can still be told */
  oldest = 1;
  watching = new Set();

  /** Another process, or a call, changes something: one revision, told by these notifications. */
  change(...notifications) {
    this.revision += 1;
    for (const [method, params] of notifications) {
      const told = { ...params, revision: this.revision };
      if (method === 'history.changed') told.conversation = 'c1';
      this.journal.push({ jsonrpc: '2.0', method, params: told });
      for (const host of this.watching) if (!host.dead) host.emit(this.journal.at(-1));
    }
  }

  put(entries) {
    const added = entries.map((entry) => ({ id: `e${this.nextId++}`, entry }));
    this.list.push(...added);
    this.change(['history.changed', { what: 'append', ids: added.map(({ id }) => id) }]);
    return added.map(({ id }) => id);
  }

  /** The `answer` option of fake_host.mjs. */
  answer = (request, host) => {
    const { id, method, params } = request;
    const refuse = (kind, data) => ({ error: { code: -32002, message: 'refused', data: { kind, ...data } } });
    if (method === 'host.hello') {
      host.greeted = true;
      host.client = params.client;
      host.grant = params.parts.window;
      const seq = { local: this.revision };
      const result = { protocol: 1, host: { name: 'fake', version: '0', pid: 1 }, features: [], notices: [] };
      const whole = { ...result, store: this.epoch, seq, conversation: 'c1', parts: params.parts };
      host.emit({ jsonrpc: '2.0', id, result: whole });
      return null; // it is answered already, before all else
    }
    if (method === 'history.watch') {
      this.watches.push(params);
      this.watching.add(host);
      host.emit({ jsonrpc: '2.0', id, result: { revision: this.revision, store: this.epoch } });
      const { since = this.revision, store = this.epoch } = params;
      if (since < this.oldest - 1 || store !== this.epoch) {
        const gap = { what: 'gap', ids: [], revision: this.revision };
        host.emit({ jsonrpc: '2.0', method: 'history.changed', params: { ...gap, conversation: 'c1' } });
        host.emit({ jsonrpc: '2.0', method: 'sessions.changed', params: gap });
      } else {
        for (const event of this.journal) if (event.params.revision > since) host.emit(event);
      }
      return null;
    }
    if (method === 'history.list') {
      return { result: { entries: this.list, images: [], total: this.list.length, conversation: 'c1', revision: this.revision } };
    }
    if (method === 'history.append') {
      return { result: { ids: this.put(params.entries), length: this.list.length, revision: this.revision } };
    }
    if (method === 'history.replace') {
      if (params.expect !== this.revision) return refuse('conflict', { revision: this.revision });
      this.list = params.entries.map(({ id: kept, entry }) => ({ id: kept ?? `e${this.nextId++}`, entry }));
      const ids = this.list.map((one) => one.id);
      this.change(['history.changed', { what: 'replace', ids }]);
      return { result: { ids, revision: this.revision, undo: null } };
    }
    return undefined;
  };
}

/** A browser whose hosts share one conversation. */
export function browserWithConversation({ script = () => ({}), answer = () => undefined } = {}) {
  const conversation = new FakeConversation();
  const both = (request, host) => {
    const special = answer(request, host, conversation);
    return special === undefined ? conversation.answer(request, host) : special;
  };
  const browser = fakeBrowser({ script: (number) => ({ answer: both, ...script(number) }) });
  return { browser, conversation };
}
