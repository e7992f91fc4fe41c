/**
 * Searches everything that a test run printed for the secrets and tokens that it used. The tests register those in
 * <output>/secrets/ (test/support/secrets.ts); each is sought as it is, as base64 and URL-encoded.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One line of the register. */
export interface RegisteredSecret {
  /** What it is, in words fit for a report. */
  readonly what: string;
  readonly value: string;
}

interface Leak {
  readonly file: string;
  readonly line: number;
  readonly what: string;
}

export interface LeakSearch {
  readonly secrets: number;
  readonly filesRead: number;
  readonly leaks: readonly Leak[];
}

interface Needle {
  readonly what: string;
  /** Its bytes as latin1, as the files are read. */
  readonly form: string;
}

/** Characters by which a form is looked up, so that each text is read once. One search for each of 20 000 forms took 40 s. */
const PREFIX = 8;

/** @param output the folder that holds the register and everything printed */
export function findLeaks(output: string): LeakSearch {
  const secrets = readRegister(join(output, 'secrets'));
  const needles = secrets.flatMap(({ what, value }) => formsOf(value).map((form): Needle => ({ what, form })));
  const short = needles.filter(({ form }) => form.length < PREFIX);
  const byPrefix = Map.groupBy(
    needles.filter(({ form }) => form.length >= PREFIX),
    ({ form }) => form.slice(0, PREFIX),
  );
  const files = globSync('**/*', { cwd: output, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.endsWith('secrets'))
    .map((entry) => join(entry.parentPath, entry.name));
  const leaks = files.flatMap((file) => {
    const text = readFileSync(file, 'latin1');
    return [...findForms(text, byPrefix, short)].map(([{ what }, at]): Leak => {
      return { file, line: text.slice(0, at).split('\n').length, what };
    });
  });
  return { secrets: secrets.length, filesRead: files.length, leaks };
}

/** @returns each needle in the text, with the index of its first occurrence */
function findForms(
  text: string,
  byPrefix: ReadonlyMap<string, readonly Needle[]>,
  short: readonly Needle[],
): Map<Needle, number> {
  const found = new Map<Needle, number>();
  for (const needle of short) {
    const at = text.indexOf(needle.form);
    if (at >= 0) found.set(needle, at);
  }
  for (let at = 0; at + PREFIX <= text.length; at++)
    for (const needle of byPrefix.get(text.slice(at, at + PREFIX)) ?? [])
      if (!found.has(needle) && text.startsWith(needle.form, at)) found.set(needle, at);
  return found;
}

function readRegister(folder: string): RegisteredSecret[] {
  if (!existsSync(folder)) return [];
  const lines = globSync('*.jsonl', { cwd: folder }).flatMap((file) =>
    readFileSync(join(folder, file), 'utf8').trim().split('\n'),
  );
  return [...new Set(lines)].map((line) => JSON.parse(line) as RegisteredSecret);
}

function formsOf(value: string): string[] {
  const base64 = Buffer.from(value, 'utf8').toString('base64');
  const forms = [value, encodeURIComponent(value), base64, encodeURIComponent(base64)];
  return [...new Set(forms)].map((form) => Buffer.from(form, 'utf8').toString('latin1'));
}
