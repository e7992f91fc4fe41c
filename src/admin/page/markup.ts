/** HTML templates that escape every value except other markup, and what several parts of the page are made of (pure). */
import { formatInstant } from '../../platform/instant-text.ts';
import { formatDuration } from '../quantity-texts.ts';
import type { LoggedEvent } from '../history/event-log.ts';
import type { CodeCount, LastMinute, PlotRow } from '../samples/traffic.ts';
import type { StatusPageSetting } from '../status/states.ts';
import type { Status } from '../status/status.ts';

/** The data of one rendering of the page, read at one instant. */
export interface PageView {
  readonly status: Status;
  readonly nowWallAt: number;
  readonly lastMinute: LastMinute;
  /** Status codes of the last five minutes. */
  readonly codes: readonly CodeCount[];
  /** Oldest first. */
  readonly rows: readonly PlotRow[];
  readonly events: readonly LoggedEvent[];
  /** Secrets masked; undefined when unknown. */
  readonly settings: readonly StatusPageSetting[] | undefined;
}

export class Markup {
  readonly text: string;

  /** @param text HTML, not escaped */
  constructor(text: string) {
    this.text = text;
  }
}

/** A value of a template; null, undefined and false render as nothing. */
export type Content = Markup | string | number | null | undefined | false | readonly Content[];

/** Template tag: the literal parts are HTML, the values are escaped. */
export function markup(strings: TemplateStringsArray, ...values: readonly Content[]): Markup {
  let text = strings[0] ?? '';
  for (const [index, value] of values.entries()) text += toHtml(value) + (strings[index + 1] ?? '');
  return new Markup(text);
}

function toHtml(content: Content): string {
  if (content === null || content === undefined || content === false) return '';
  if (content instanceof Markup) return content.text;
  if (typeof content === 'object') return content.map(toHtml).join('');
  return String(content).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** A description list. Omits facts whose value is false. */
export function renderFacts(facts: readonly (readonly [name: string, value: Content])[]): Markup {
  return markup`<dl class="facts">
${facts.filter(([, value]) => value !== false).map(([name, value]) => markup`<div><dt>${name}</dt><dd>${value}</dd></div>\n`)}</dl>`;
}

/** Sentences with settings and commands in backticks, from the verdict and from the table of alerts. Nothing without a sentence. */
export function renderAdvice(sentences: readonly string[]): Markup {
  if (sentences.length === 0) return markup``;
  return markup`<div class="advice"><h3>What to do</h3><ul>${sentences.map(
    (sentence) =>
      markup`<li>${sentence.split('`').map((part, index) => (index % 2 === 1 ? markup`<code>${part}</code>` : part))}</li>`,
  )}</ul></div>`;
}

export function renderBadge(level: 'good' | 'wait' | 'bad', text: Content): Markup {
  return markup`<span class="badge ${level}">${text}</span>`;
}

/** A 4xx is less than bad: the client may have asked for what is not there. */
export function levelOfStatus(status: number): 'good' | 'wait' | 'bad' {
  return status < 400 ? 'good' : status < 500 ? 'wait' : 'bad';
}

/** A countdown, which page.js updates. @param untilWallAt epoch milliseconds */
export function renderCountdown(untilWallAt: number, nowWallAt: number): Markup {
  // Whole seconds: the same end must give the same markup.
  const until = Math.round(untilWallAt / 1000) * 1000;
  return markup`<time data-until="${until}">${formatDuration(until - nowWallAt)}</time>`;
}

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
