/** The table of local replies in docs/configuration.md has every code with the status and the Retry-After of src/platform/errors.ts. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { LOCAL_REPLIES, LOCAL_REPLY_CODES } from '../../src/platform/errors.ts';

const PAGE = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');

it('the documented local replies are those of the table of codes', () => {
  const rows = PAGE.split('| reply code')[1]?.split('\n\n')[0]?.split('\n').slice(2) ?? [];
  const documented = rows.flatMap((row) => {
    const [, names = '', states = ''] = row.split('|');
    const statuses = states.split(',').map((state) => state.replaceAll('`', '').trim());
    return names
      .split(',')
      .map((name, at) => [name.replaceAll('`', '').trim(), statuses[statuses.length === 1 ? 0 : at]]);
  });
  const expected = LOCAL_REPLY_CODES.map((code) => {
    const { status, retryAfterMs } = LOCAL_REPLIES[code];
    return [code, retryAfterMs === undefined ? String(status) : `${String(status)} + Retry-After`];
  });
  expect(documented).toEqual(expect.arrayContaining(expected));
  expect(documented).toHaveLength(expected.length);
});
