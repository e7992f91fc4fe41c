/** Reads the hidden rule of a scenario file; its kinds and their entries are listed in README.md. */
import type { LimiterRule } from './limiters.ts';
import { numberFrom, Reader } from './reader.ts';

/** @throws Error that names what is wrong */
export function parseRule(json: unknown): LimiterRule {
  const entries = new Reader(json, 'a limiter');
  const rule = parseKind(entries.text('kind'), entries);
  entries.end();
  return rule;
}

function parseKind(kind: string, entries: Reader): LimiterRule {
  switch (kind) {
    case 'fixed-window':
    case 'sliding-counter': {
      const phaseMs = entries.optional('phaseMs', (value) => numberFrom(value, 'phaseMs'));
      return { kind, ...windowFrom(entries), ...(phaseMs === undefined ? {} : { phaseMs }) };
    }
    case 'slotted-window': {
      const phaseMs = entries.optional('phaseMs', (value) => numberFrom(value, 'phaseMs')) ?? 0;
      return { kind, ...windowFrom(entries), slots: entries.number('slots'), phaseMs };
    }
    case 'first-call-window':
    case 'sliding-log':
      return { kind, ...windowFrom(entries) };
    case 'token-bucket':
      return { kind, perSecond: entries.number('perSecond'), burst: entries.number('burst') };
    case 'gcra': {
      const stepMs = entries.optional('stepMs', (value) => numberFrom(value, 'stepMs')) ?? 0;
      const holdsBack = entries.optional('holdsBack', (value) => value === true) ?? false;
      return { kind, perSecond: entries.number('perSecond'), burst: entries.number('burst'), stepMs, holdsBack };
    }
    case 'bulk-refill': {
      const phaseMs = entries.optional('phaseMs', (value) => numberFrom(value, 'phaseMs')) ?? 0;
      const quota = { calls: entries.number('calls'), everyMs: entries.number('everyMs') };
      return { kind, ...quota, burst: entries.number('burst'), phaseMs };
    }
    case 'concurrency':
      return { kind, calls: entries.number('calls') };
    case 'all-of':
      return { kind, limiters: entries.list('limiters', [], parseRule) };
    case 'steps':
      return { kind, steps: entries.list('steps', [], parseStep) };
    case 'tenant':
      return {
        kind,
        limiter: parseRule(entries.take('limiter')),
        share: entries.number('share'),
        seed: seedFrom(entries),
      };
    case 'weighted':
      return {
        kind,
        limiter: parseRule(entries.take('limiter')),
        costs: entries.list('costs', [], parseCost),
        seed: seedFrom(entries),
      };
    case 'nodes': {
      const choice = entries.text('choice');
      if (choice !== 'turns' && choice !== 'random') throw new Error('"choice" must be turns or random');
      return {
        kind,
        limiter: parseRule(entries.take('limiter')),
        nodes: entries.number('nodes'),
        choice,
        seed: seedFrom(entries),
      };
    }
    case 'ban':
      return parseBan(entries);
    default:
      throw new Error(`"${kind}" is no kind of limiter`);
  }
}

function windowFrom(entries: Reader) {
  const countsRefused = entries.optional('countsRefused', (value) => value === true) ?? false;
  return { calls: entries.number('calls'), windowMs: entries.number('windowMs'), countsRefused };
}

function seedFrom(entries: Reader): number {
  return entries.optional('seed', (value) => numberFrom(value, 'seed')) ?? 1;
}

function parseCost(json: unknown): { permits: number; share: number } {
  const entries = new Reader(json, 'a cost');
  const cost = { permits: entries.number('permits'), share: entries.number('share') };
  entries.end();
  return cost;
}

function parseStep(json: unknown): { fromMs: number; limiter: LimiterRule } {
  const entries = new Reader(json, 'a step');
  const step = { fromMs: entries.number('fromMs'), limiter: parseRule(entries.take('limiter')) };
  entries.end();
  return step;
}

function parseBan(entries: Reader): LimiterRule {
  const status = entries.optional('status', (value) => numberFrom(value, 'status'));
  return {
    kind: 'ban',
    limiter: parseRule(entries.take('limiter')),
    refusals: entries.number('refusals'),
    withinMs: entries.number('withinMs'),
    banMs: entries.number('banMs'),
    ...(status === undefined ? {} : { status }),
  };
}
