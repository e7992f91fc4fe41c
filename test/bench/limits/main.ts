/**
 * Two months of one process in virtual time, with the changes of clocks of both zones. Exits with 1 when a call was refused, a count was
 * lost, or a crash counted more than one lease too many.
 * Run: npm run bench:limits [-- --seed 2]
 */
import { parseArgs } from 'node:util';
import { formatTable } from '../governor/format.ts';
import { LIMITS, playMonth, type Forecast, type MonthResult } from './month.ts';

const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' } } });

const MONTHS = [
  ['March', Date.parse('2026-03-05T10:00:00Z')],
  ['autumn', Date.parse('2026-10-10T10:00:00Z')],
] as const;
const HOUR_MS = 3_600_000;
/** Of LIMITS: what one lease holds. */
const LEASES = [200, 1000, 12];

for (const [name, start] of MONTHS) {
  const startedAt = performance.now();
  const result = await playMonth({ start, days: 31, seed: Number(values.seed), ends: 20 });
  console.log(
    `\n${name}: 31 days, 20 clean restarts, 20 crashes, in ${formatSeconds(performance.now() - startedAt)}\n`,
  );
  print(result);
}

function print({ offered, sent, refused, most, days, crashes, lost, forecasts, warnings }: MonthResult): void {
  console.log(`offered ${offered}, sent ${sent}, refused by the upstream ${refused}, lost by clean restarts ${lost}\n`);
  const rows = LIMITS.map(({ name, calls, per, window, timeZone }, index) => {
    const over = crashes.map(({ overCounts }) => overCounts[index] ?? 0).toSorted((one, other) => one - other);
    const above = crashes.map(({ aboveUpstream }) => aboveUpstream[index] ?? 0);
    if (!(Math.max(...over) <= (LEASES[index] ?? 0) && Math.min(...above) >= 0)) process.exitCode = 1;
    const title = `${name}: ${calls} per ${per} ${window}${window === 'calendar' ? ` ${timeZone}` : ''}`;
    const [median, largest] = [over[Math.floor(over.length / 2)], over.at(-1)];
    return [title, most[index], median, largest, LEASES[index], Math.min(...above), Math.max(...above)].map(String);
  });
  const HEADER = [
    'limit',
    'most used',
    'over-count of a crash: median',
    'largest',
    'lease',
    'count − upstream after a crash: least',
    'most',
  ];
  console.log(formatTable(HEADER, rows));
  const full = [...days.values()]
    .slice(1, -1)
    .filter((count) => count > 9000)
    .toSorted((one, other) => one - other);
  console.log(`\n${full.length} days used more than 9000 of 10000: ${full.join(' ')}`);
  console.log(
    `\nforecast at half of the day\n\n${formatTable(['day', 'forecast', 'used up', 'error'], describeForecasts(forecasts))}`,
  );
  if (warnings.length > 0) console.log(warnings.join('\n'));
  if (refused + lost + warnings.length > 0) process.exitCode = 1;
}

function describeForecasts(forecasts: readonly Forecast[]): string[][] {
  return forecasts.map(({ at, forecastAt, usedUpAt }) => {
    const error = forecastAt === usedUpAt ? 'none' : ((forecastAt - usedUpAt) / HOUR_MS).toFixed(1);
    const isKnown = Number.isFinite(forecastAt) === Number.isFinite(usedUpAt);
    return [
      new Date(at).toISOString().slice(0, 10),
      formatTime(forecastAt),
      formatTime(usedUpAt),
      isKnown ? (error === 'none' ? error : `${error} h`) : Number.isFinite(usedUpAt) ? 'missed' : 'false',
    ];
  });
}

function formatTime(at: number): string {
  return Number.isFinite(at) ? new Date(at).toISOString().slice(11, 16) : 'never';
}

function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
