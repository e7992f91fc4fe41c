/** Formats generated texts as `npm run format:write` formats files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, type FormatConfig } from 'oxfmt';

const SETTINGS = join(import.meta.dirname, '..', '.oxfmtrc.json');

/**
 * @param file whose name says which language it is; it need not exist
 * @throws Error when the text is not of that language
 */
export async function formatText(text: string, file: string): Promise<string> {
  const { printWidth, singleQuote } = JSON.parse(readFileSync(SETTINGS, 'utf8')) as Required<FormatConfig>;
  const { code, errors } = await format(file, text, { printWidth, singleQuote });
  const [error] = errors;
  if (error !== undefined) throw new Error(`${file}: ${error.message}`);
  return code;
}
