/** The search that guards the whole run must itself be able to find. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findLeaks } from '../../tools/test-run/leaks.ts';

const SECRET = 'pä:ß%2B+/=sesames';
const FORMS = {
  'as it is': SECRET,
  'URL-encoded': encodeURIComponent(SECRET),
  base64: Buffer.from(SECRET).toString('base64'),
  'base64, URL-encoded': encodeURIComponent(Buffer.from(SECRET).toString('base64')),
};

describe('findLeaks', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leaks-'));
    mkdirSync(join(folder, 'secrets'));
    writeFileSync(join(folder, 'secrets', '1.jsonl'), `${JSON.stringify({ what: 'a secret', value: SECRET })}\n`);
  });

  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it.each(Object.entries(FORMS))('finds a secret %s, in a file of a subfolder', (_, form) => {
    mkdirSync(join(folder, 'logs'));
    writeFileSync(join(folder, 'logs', 'one.log'), `first\n{"authorization":"Basic ${form}"}\n`);
    expect(findLeaks(folder).leaks).toEqual([{ file: join(folder, 'logs', 'one.log'), line: 2, what: 'a secret' }]);
  });

  it('finds any secrets of any length at any place, and none that is not there', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '=', '%'), minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(
        fc.uniqueArray(letters, { minLength: 1, maxLength: 6 }),
        fc.array(letters, { maxLength: 8 }),
        (values, parts) => {
          const register = values.map((value) => JSON.stringify({ what: value, value }));
          writeFileSync(join(folder, 'secrets', '1.jsonl'), `${register.join('\n')}\n`);
          const text = parts.join('\n');
          writeFileSync(join(folder, 'one.log'), text);
          const expected = values.filter((value) => {
            const base64 = Buffer.from(value).toString('base64');
            const forms = [value, encodeURIComponent(value), base64, encodeURIComponent(base64)];
            return forms.some((form) => text.includes(form));
          });
          const found = findLeaks(folder).leaks.map(({ what }) => what);
          expect(new Set(found)).toEqual(new Set(expected));
        },
      ),
    );
  });

  it('skips the register itself, and counts the files that it read', () => {
    writeFileSync(join(folder, 'one.log'), 'nothing here\n');
    expect(findLeaks(folder)).toEqual({ secrets: 1, filesRead: 1, leaks: [] });
  });
});
