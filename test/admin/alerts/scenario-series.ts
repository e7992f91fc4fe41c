/**
 * Series of the scenarios: one value for each 30 s, from which promtool gets its input and the ring of samples its counts. Names are those
 * of the metrics without their prefix.
 */
import type { Labels } from '../../../src/admin/samples/samples.ts';

export const STEP_MS = 30_000;
/** Steps in a minute. */
const PER_MINUTE = 2;

/** A value at each step: of a counter its total, of a gauge its value; undefined where there is none. */
export interface PlayedSeries {
  readonly kind: 'counter' | 'gauge';
  readonly metric: string;
  readonly labels: Labels;
  readonly valueAt: (step: number) => number | undefined;
}

/** So many observations of one duration at each step. */
export interface PlayedDurations {
  readonly kind: 'durations';
  readonly metric: string;
  readonly labels: Labels;
  readonly observed: readonly { readonly seconds: number; readonly perStep: number }[];
  /** As `metrics.buckets`: the bounds that Prometheus gets; texts are used as they are. Default: all. */
  readonly bounds?: readonly (number | string)[];
}

/** Not one of our own metrics; its name has no prefix, and the ring does not have it. */
export interface OutsideSeries {
  readonly kind: 'outside';
  readonly metric: string;
  readonly labels: Labels;
  readonly valueAt: PlayedSeries['valueAt'];
}

export type ScenarioSeries = PlayedSeries | PlayedDurations | OutsideSeries;

export const minutes = (count: number): number => count * PER_MINUTE;

/** A counter that grows by the same number at each step. */
export function steady(metric: string, labels: Labels, perStep: number): PlayedSeries {
  return { kind: 'counter', metric, labels, valueAt: (step) => step * perStep };
}

/** A counter of events spread over a window, the same number in each window. */
export function events(metric: string, labels: Labels, perWindow: number, windowMinutes: number): PlayedSeries {
  const valueAt = (step: number): number => Math.floor((step * perWindow) / minutes(windowMinutes));
  return { kind: 'counter', metric, labels, valueAt };
}

/** A counter that grows at these minutes, by one each time. */
export function eventsAt(metric: string, labels: Labels, atMinutes: readonly number[]): PlayedSeries {
  const valueAt = (step: number): number => atMinutes.filter((at) => minutes(at) <= step).length;
  return { kind: 'counter', metric, labels, valueAt };
}

/** A counter that begins to grow at a minute. */
export function steadyFrom(metric: string, labels: Labels, perStep: number, fromMinute: number): PlayedSeries {
  return { kind: 'counter', metric, labels, valueAt: (step) => Math.max(0, step - minutes(fromMinute)) * perStep };
}

/** A gauge that stays as it is. */
export function level(metric: string, labels: Labels, value: number): PlayedSeries {
  return { kind: 'gauge', metric, labels, valueAt: () => value };
}

/** A gauge that has another value from a minute on; undefined: none. */
export function levelFrom(
  metric: string,
  labels: Labels,
  before: number | undefined,
  fromMinute: number,
  after: number | undefined,
): PlayedSeries {
  return { kind: 'gauge', metric, labels, valueAt: (step) => (step < minutes(fromMinute) ? before : after) };
}

/** A gauge by step. */
export function gaugeBy(metric: string, labels: Labels, valueAt: PlayedSeries['valueAt']): PlayedSeries {
  return { kind: 'gauge', metric, labels, valueAt };
}

/** A gauge that is 1 for a share of the steps, evenly, and else 0. */
export function flag(metric: string, labels: Labels, share: number): PlayedSeries {
  const valueAt = (step: number): number => Math.floor((step + 1) * share) - Math.floor(step * share);
  return { kind: 'gauge', metric, labels, valueAt };
}

export function durations(
  metric: string,
  labels: Labels,
  observed: PlayedDurations['observed'],
  bounds?: PlayedDurations['bounds'],
): PlayedDurations {
  return { kind: 'durations', metric, labels, observed, ...(bounds !== undefined && { bounds }) };
}

export function outside(metric: string, valueAt: PlayedSeries['valueAt'], labels: Labels = {}): OutsideSeries {
  return { kind: 'outside', metric, labels, valueAt };
}
