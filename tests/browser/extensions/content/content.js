// Counts what the stub tries, and connects it.
globalThis.attempts = 0;
globalThis.unhandled = [];
addEventListener('unhandledrejection', ({ reason }) => unhandled.push(String(reason)));
const connect = chrome.runtime.connect.bind(chrome.runtime);
chrome.runtime.connect = (...args) => {
  attempts += 1;
  return connect(...args);
};
globalThis.ready = import(chrome.runtime.getURL('sidekeep/content.js')).then(({ connectContent }) => {
  globalThis.connectContent = connectContent;
  globalThis.keep = connectContent();
});
