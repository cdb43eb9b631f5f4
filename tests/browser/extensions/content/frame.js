// A page of the extension that outlives it: the page of the web around it stays open.
import { connect } from './sidekeep/index.js';

globalThis.attempts = 0;
globalThis.unhandled = [];
addEventListener('unhandledrejection', ({ reason }) => unhandled.push(String(reason)));
const connectNative = chrome.runtime.connectNative.bind(chrome.runtime);
chrome.runtime.connectNative = (...args) => {
  attempts += 1;
  return connectNative(...args);
};
globalThis.keep = connect();
