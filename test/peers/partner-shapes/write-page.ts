/** `npm run partner-table`: writes the settings for each partner into docs/partners.md. Their tests show that they are right. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceSection } from '../server-page.ts';
import { PARTNER_PAGE, renderPartnerPage } from './partner-page.ts';
import { formatText } from '../../../tools/format-text.ts';

const PATH = join(import.meta.dirname, '..', '..', '..', PARTNER_PAGE);
let page = readFileSync(PATH, 'utf8');
for (const [section, text] of Object.entries(renderPartnerPage())) page = replaceSection(page, section, text);
writeFileSync(PATH, await formatText(page, PATH));
