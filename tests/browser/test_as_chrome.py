"""The stub in the place of ``chrome``, for libraries that are handed one or read the global."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from .driver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_everything_but_storage_is_the_browsers_own(page: Page) -> None:
    assert await page.evaluate("""() => {
      const made = keep.asChrome();
      const names = Object.keys(chrome);
      return {
        stable: keep.asChrome() === made && made.storage === made.storage,
        names: JSON.stringify(Object.keys(made).sort()) === JSON.stringify(names.sort()),
        same: names.filter((name) => made[name] === chrome[name]).length,
        count: names.length,
        id: made.runtime.id === chrome.runtime.id,
        url: made.runtime.getURL('x') === chrome.runtime.getURL('x'),
      };
    }""") == {
        "stable": True,
        "names": True,
        "same": (count := await page.evaluate("Object.keys(chrome).length")) - 1,
        "count": count,
        "id": True,
        "url": True,
    }


async def test_its_storage_has_the_shape_of_the_real_one(page: Page) -> None:
    assert await page.evaluate("""() => {
      const { storage } = keep.asChrome();
      return {
        names: Object.keys(storage).join() === Object.keys(chrome.storage).join(),
        levels: JSON.stringify(storage.AccessLevel) === JSON.stringify(chrome.storage.AccessLevel),
        own: storage.local === keep.storage.local && storage.session === keep.storage.session,
        passed: storage.sync === chrome.storage.sync && storage.managed === chrome.storage.managed,
      };
    }""") == {"names": True, "levels": True, "own": True, "passed": True}


async def test_its_event_of_all_areas_tells_of_the_browsers_own_too(page: Page) -> None:
    heard = await page.evaluate("""async () => {
      const { storage } = keep.asChrome();
      const heard = [];
      const listener = (changes, area) => heard.push([Object.keys(changes).join(), area]);
      storage.onChanged.addListener(listener);
      await storage.local.set({ ours: 1 });
      await storage.session.set({ ours: 1 });
      await chrome.storage.local.set({ 'a real one': 1 });
      await storage.sync.set({ real: 1 });
      await new Promise((done) => setTimeout(done, 100));
      storage.onChanged.removeListener(listener);
      await storage.local.set({ ours: 2 });
      await storage.sync.set({ real: 2 });
      await new Promise((done) => setTimeout(done, 100));
      await chrome.storage.local.remove('a real one');
      await storage.sync.clear();
      await storage.session.clear();
      return [heard, storage.onChanged.hasListeners(), keep.storage.onChanged.hasListeners()];
    }""")
    assert heard == [[["ours", "local"], ["ours", "session"], ["real", "sync"]], False, False]


@pytest.mark.parametrize("place", ["global", "storage"])
async def test_it_can_take_the_place_of_the_global_and_the_stub_goes_on(
    browser: Browser, place: str
) -> None:
    token = await browser.token()
    page = await browser.page(connect=False)
    outcome = await page.evaluate(
        """async (place) => {
          const { connect } = await import('/sidekeep/index.js');
          const real = chrome.storage;
          const keep = connect();
          const made = keep.asChrome();
          if (place === 'global') globalThis.chrome = globalThis.browser = made;
          else chrome.storage = browser.storage = made.storage;
          const changes = [];
          chrome.storage.onChanged.addListener((change, area) => changes.push([change, area]));
          // A library of the older kind.
          const viaCallback = (method, ...args) => new Promise((done, fail) => {
            chrome.storage.local[method](...args, (value) => {
              if (chrome.runtime.lastError) fail(new Error(chrome.runtime.lastError.message));
              else done(value);
            });
          });
          await viaCallback('remove', 'library');
          await viaCallback('set', { library: 'callback' });
          const got = await viaCallback('get', 'library');
          const refusing = viaCallback('set', { v: new Uint8Array(1) });
          const refused = await refusing.catch((error) => error.message);
          await browser.storage.session.set({ library: 'promise' });
          const second = connect(); // another copy finds the real areas, too
          const both = await second.storage.local.get('library');
          const session = await second.storage.session.get();
          await second.close();
          const kept = await real.local.get('sidekeep:profile');
          await keep.storage.session.clear();
          await keep.close();
          return { got, refused, both, session, changes, token: kept['sidekeep:profile'] };
        }""",
        place,
    )
    assert outcome["got"] == outcome["both"] == {"library": "callback"}
    assert outcome["refused"] == "Cannot serialize value to JSON"
    assert outcome["session"] == {"library": "promise"}
    assert outcome["token"] == token
    changes = [area for change, area in outcome["changes"] if "library" in change]
    assert changes[-3:] == ["local", "session", "session"]
