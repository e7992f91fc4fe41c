import { expect, it } from 'vitest';
import { readMadeAt } from '../../src/platform/origin-clock.ts';

const NOW = Date.UTC(2026, 10, 6, 8, 49, 7) + 321;

it.each([
  ['Fri, 06 Nov 2026 09:49:07 GMT', Date.UTC(2026, 10, 6, 9, 49, 7)],
  [' Friday, 06-Nov-26 09:49:07 GMT ', Date.UTC(2026, 10, 6, 9, 49, 7)],
  ['Thu, 01 Jan 1970 00:00:09 GMT', 9000],
  [undefined, NOW],
  ['', NOW],
  ['2026-11-06T09:49:07Z', NOW],
  ['Fri, 06 Nov 2026 09:49:07 GMT, Fri, 06 Nov 2026 09:49:07 GMT', NOW],
])('with Date: %j the clock of the origin shows %i', (date, shown) => {
  expect(readMadeAt(date, undefined, NOW).originAt).toBe(shown);
});
