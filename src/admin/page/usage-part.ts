/** The learned limit as a picture with its text (pure): how much of it is used, and when the next request may be sent. */
import type { Status } from '../status/status.ts';
import { formatDuration, formatLatency, formatRate } from '../quantity-texts.ts';
import { markup } from './markup.ts';
import type { Markup } from './markup.ts';

type Usage = NonNullable<Status['throttle']['usage']>;

/** Width of the drawing in its own units. */
const WIDTH = 400;
/** The time axis of a limit without a window, seconds. */
const MIN_AXIS_SECONDS = 1;

/** Nothing while no limit is known. */
export function renderUsage({ usage, learned }: Pick<Status['throttle'], 'usage' | 'learned'>): Markup {
  if (usage === null) return markup``;
  const { used, limit, windowSeconds, opensInSeconds } = usage;
  const fill = limit === 0 ? 0 : Math.min(1, used / limit) * WIDTH;
  const axisSeconds = Math.max(windowSeconds ?? MIN_AXIS_SECONDS, opensInSeconds ?? 0);
  const opening = opensInSeconds === null ? null : (opensInSeconds / axisSeconds) * WIDTH;
  // The text beside the drawing says the same.
  return markup`<figure class="usage"><svg viewBox="0 0 ${WIDTH} 44" aria-hidden="true" focusable="false">
<rect class="track" x="0" y="0" width="${WIDTH}" height="16" rx="4"></rect>
<rect class="${used >= limit ? 'used full' : 'used'}" x="0" y="0" width="${round(fill)}" height="16" rx="4"></rect>
<path class="axis" d="M0 30H${WIDTH}M0 26V34M${WIDTH} 26V34"></path>
${opening !== null && markup`<circle class="opening" cx="${round(Math.min(WIDTH - 5, Math.max(5, opening)))}" cy="30" r="5"></circle>`}
<text x="0" y="43">now</text><text class="end" x="${WIDTH}" y="43">in ${formatSeconds(axisSeconds)}</text>
</svg><figcaption class="say">${describeUsage(usage, learned?.kind)}</figcaption></figure>`;
}

function describeUsage({ used, limit, windowSeconds, opensInSeconds }: Usage, kind: string | undefined): string {
  const counted = `${formatRate(used)} of ${formatRate(limit)}`;
  const where =
    windowSeconds !== null
      ? `${counted} requests used in the window of ${formatDuration(windowSeconds * 1000)}`
      : kind === 'bucket'
        ? `${counted} requests of the burst used`
        : `${counted} concurrent requests in use`;
  if (opensInSeconds === null) return `${where}; the next one is sent when another ends.`;
  return opensInSeconds === 0
    ? `${where}; the next one may be sent now.`
    : `${where}; the next one may be sent in ${formatSeconds(opensInSeconds)} (the dot).`;
}

function formatSeconds(seconds: number): string {
  return seconds < 10 ? formatLatency(seconds * 1000) : formatDuration(seconds * 1000);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
