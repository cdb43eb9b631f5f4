/** What the shipped extension uses of the browser beside the stub. */
declare const chrome: {
  runtime: { getURL(path: string): string };
  action: { onClicked: { addListener(listener: () => void): void } };
  tabs: { create(properties: { url: string }): Promise<unknown> };
};
