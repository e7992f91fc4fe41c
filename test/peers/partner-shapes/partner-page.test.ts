/** docs/partners.md has the settings that the tests of the partners use. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { replaceSection } from '../server-page.ts';
import { PARTNER_PAGE, renderPartnerPage } from './partner-page.ts';
import { formatText } from '../../../tools/format-text.ts';

test('the page shows the settings of the shapes: `npm run partner-table` writes it', async () => {
  const path = join(import.meta.dirname, '..', '..', '..', PARTNER_PAGE);
  const page = readFileSync(path, 'utf8');
  let generated = page;
  for (const [section, text] of Object.entries(renderPartnerPage()))
    generated = replaceSection(generated, section, text);
  expect(await formatText(generated, path)).toBe(page);
});

test('the parameters and header fields of its lists are texts in YAML, as the settings require', () => {
  const { partners = '', keys = '' } = renderPartnerPage();
  const settings = [...`${partners}\n${keys}`.matchAll(/`((?:auth|upstream)\.\w+: \{.*?\})`/g)];
  expect(settings.length).toBeGreaterThan(50);
  for (const [, setting = ''] of settings)
    for (const value of Object.values(parse(setting) as Record<string, object>))
      expect([setting, Object.values(value).filter((one) => one !== null && typeof one !== 'string')]).toEqual([
        setting,
        [],
      ]);
});
