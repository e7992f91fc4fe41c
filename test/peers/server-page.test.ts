/** docs/authorization-servers.md has the settings that the tests of the shapes use. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { renderProducts, replaceSection, SERVER_PAGE } from './server-page.ts';
import { formatText } from '../../tools/format-text.ts';

test('the page shows the settings of server-shapes.ts: `npm run server-table` writes it', async () => {
  const path = join(import.meta.dirname, '..', '..', SERVER_PAGE);
  const page = readFileSync(path, 'utf8');
  const generated = replaceSection(page, 'products', renderProducts());
  expect(await formatText(generated, path)).toBe(page);
});
