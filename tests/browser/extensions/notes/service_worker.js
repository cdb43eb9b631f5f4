import { count, keepCounting } from './badge.js';

keepCounting();

chrome.runtime.onMessage.addListener((message, sender, reply) => {
  if (message !== 'count') return false;
  count().then(reply);
  return true;
});
