// What the worker keeps an eye on: how many notes there are, and whether something failed.

const COUNT = 'badge';

export async function count() {
  const { [COUNT]: known } = await chrome.storage.session.get(COUNT);
  if (known !== undefined) return known;
  const { order = [] } = await chrome.storage.local.get('order');
  await chrome.storage.session.set({ [COUNT]: order.length });
  return order.length;
}

export function keepCounting() {
  chrome.storage.onChanged.addListener((changes, area) => {
    if (area !== 'local' || !changes.order) return;
    chrome.storage.session.set({ [COUNT]: (changes.order.newValue ?? []).length }, () => {
      if (chrome.runtime.lastError) console.warn(chrome.runtime.lastError.message);
    });
  });
}
