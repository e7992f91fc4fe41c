/** Renders durations and instants, which page.js keeps up to date. */
import { formatInstant } from '../../platform/instant-text.ts';
import { formatDuration } from '../quantity-texts.ts';
import { markup } from './markup.ts';
import type { Markup } from './markup.ts';

/** A countdown, which page.js updates. @param untilWallAt epoch milliseconds */
export function renderCountdown(untilWallAt: number, nowWallAt: number): Markup {
  // Whole seconds: the same end must give the same markup.
  const until = Math.round(untilWallAt / 1000) * 1000;
  return markup`<time data-until="${until}">${formatDuration(until - nowWallAt)}</time>`;
}

/** The elapsed time, which page.js updates. */
export function renderElapsed(sinceWallAt: number, nowWallAt: number): Markup {
  const since = Math.round(sinceWallAt / 1000) * 1000;
  return markup`<time data-since="${since}">${formatDuration(nowWallAt - since)}</time>`;
}

/** The time of day in UTC, which page.js changes to local time. */
export function renderClockTime(wallAt: number, digits: 'seconds' | 'minutes' = 'seconds'): Markup {
  const iso = formatInstant(wallAt);
  const shown = digits === 'seconds' ? iso.slice(11, 19) : iso.slice(11, 16);
  return markup`<time datetime="${iso}" data-clock="${digits}">${shown} UTC</time>`;
}
