/** Writes the results of a benchmark into their section of docs/benchmarks/robustness.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatText } from '../../tools/format-text.ts';
import { replaceSection } from '../peers/server-page.ts';

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'benchmarks', 'robustness.md');

export async function writeRobustness(section: 'growth' | 'hostile' | 'outages', text: string): Promise<void> {
  writeFileSync(PAGE, await formatText(replaceSection(readFileSync(PAGE, 'utf8'), section, text), PAGE));
}
