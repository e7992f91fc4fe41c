/** docs/authorization-servers.md has the settings that the tests of the shapes use. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { renderProducts, replaceSection, SERVER_PAGE } from './server-page.ts';

test('the page shows the settings of server-shapes.ts: `npm run server-table` writes it', async () => {
  const path = join(import.meta.dirname, '..', '..', SERVER_PAGE);
  const page = readFileSync(path, 'utf8');
  const generated = replaceSection(page, 'products', renderProducts());
  expect(await format(generated, { ...(await resolveConfig(path)), filepath: path })).toBe(page);
});
