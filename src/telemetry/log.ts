/**
 * The log: JSON lines on stdout, one per request at `info`. Turns events into lines (pino), takes secrets and terminal
 * controls out of them (redaction) and hands them to a sink that neither blocks nor grows. Which events there are is
 * told in events.ts.
 */
import { pino } from 'pino';
import type { Logger } from 'pino';
import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { createDamper } from './damper.ts';
import type { Damper } from './damper.ts';
import type { Observe, RequestEnded, SidecarEvent } from './events.ts';
import { LogSink } from './log-sink.ts';
import type { LogStream } from './log-sink.ts';
import { createRedaction } from './redaction.ts';

type RateLimited = Extract<SidecarEvent, { kind: 'rate-limited' }>;
type TokenRequested = Extract<SidecarEvent, { kind: 'token-requested' }>;

/** Strings chosen by others are cut to this many characters. */
const LONGEST_TEXT = 512;
const RATE_LIMIT_SUMMARY_EVERY_MS = 5000;

/** What a line carries besides time, level and message. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface LogOptions {
  readonly level: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';
  /** Default: process.stdout. */
  readonly destination?: LogStream;
  /** Default: the process's own clock. */
  readonly clock?: Clock;
}

export interface Log {
  readonly observe: Observe;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /**
   * Masks a secret, plain and encoded, in every later line. With the client id also their Basic form. To be called with
   * each new value of a secret that rotates.
   */
  registerSecret(value: string, clientId?: string): void;
  /** Lines lost since the start because the destination did not take them. */
  readonly droppedLines: () => number;
  /**
   * Writes what is left, waiting at most `timeoutMs`; later lines are dropped. Never rejects. While the destination is
   * blocked its pending write keeps the event loop alive: end the process by process.exit.
   */
  close(timeoutMs: number): Promise<void>;
}

/** Opens the log. */
export function createLog({ level, destination, clock = systemClock }: LogOptions): Log {
  const redaction = createRedaction();
  const sink = new LogSink({
    stream: destination ?? process.stdout,
    clock,
    onDropped: (lines) => logger.warn({ lines }, 'log lines were dropped: their reader is too slow'),
  });
  const logger = createLogger(level, clock, (line) => sink.write(redaction.apply(line)));
  const rateLimits = createRateLimitLines(logger, clock);
  const lastWords = (): void => sink.flush();
  // A process that ends by a fault still says why: a write to a pipe is tried at once, and never waited for.
  process.once('exit', lastWords);
  return {
    observe: createObserver(logger, rateLimits),
    debug: (message, fields = {}) => logger.debug(fields, message),
    info: (message, fields = {}) => logger.info(fields, message),
    warn: (message, fields = {}) => logger.warn(fields, message),
    error: (message, fields = {}) => logger.error(fields, message),
    registerSecret: (value, clientId) => redaction.register(value, clientId),
    droppedLines: () => sink.droppedLines,
    async close(timeoutMs) {
      rateLimits.stop();
      await sink.close(timeoutMs);
      process.off('exit', lastWords);
    },
  };
}

function createLogger(level: LogOptions['level'], clock: Clock, write: (line: string) => void): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date(clock.wallNow()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  );
}

function createObserver(logger: Logger, rateLimits: Damper<RateLimited>): Observe {
  const debugging = logger.isLevelEnabled('debug');
  return (event) => {
    switch (event.kind) {
      case 'request-ended':
        logger.info(accessFields(event), 'request');
        return;
      case 'rate-limited':
        rateLimits.tell(event);
        return;
      case 'token-requested':
        logTokenRequest(logger, event);
        return;
      case 'warning':
        logger.warn(cut(event.message));
        return;
      case 'stopped':
        logger[event.cut === 0 ? 'info' : 'warn']({ cut: event.cut }, 'stopped');
        return;
      case 'listening':
      case 'draining':
      case 'token-invalidated': {
        const { kind, ...fields } = event;
        logger.info(fields, kind.replace('-', ' '));
        return;
      }
      default:
        if (!debugging) return;
        logger.debug(event, event.kind.replaceAll('-', ' '));
    }
  };
}

function accessFields(event: RequestEnded): LogFields {
  return {
    method: cut(event.method),
    path: cut(event.path),
    route: event.route,
    code: event.code,
    source: event.source,
    localReply: event.localReply,
    durationMs: tenths(event.durationMs),
    queuedMs: tenths(event.queuedMs),
    attempts: event.attempts,
    requestBytes: event.requestBytes,
    responseBytes: event.responseBytes,
    fault: event.fault === undefined ? undefined : cut(event.fault),
  };
}

function logTokenRequest(logger: Logger, event: TokenRequested): void {
  const fields = {
    credential: event.credential,
    outcome: event.outcome,
    detail: event.detail === undefined ? undefined : cut(event.detail),
    durationMs: tenths(event.durationMs),
    lifetimeMs: event.lifetimeMs,
    nextInMs: event.nextInMs === undefined ? undefined : Math.round(event.nextInMs),
  };
  if (event.outcome === 'ok') logger.info(fields, 'token obtained');
  else logger.warn(fields, 'token request failed');
}

/** A storm of 429s is one line, then one line each few seconds, for every route. */
function createRateLimitLines(logger: Logger, clock: Clock): Damper<RateLimited> {
  const dampers = new Map<string, Damper<RateLimited>>();
  const createFor = (): Damper<RateLimited> =>
    createDamper({
      clock,
      windowMs: RATE_LIMIT_SUMMARY_EVERY_MS,
      first: (event) => {
        logger.warn(rateLimitFields(event), 'the upstream limits the rate');
      },
      summary: (signals, last) => {
        logger.warn({ signals, ...rateLimitFields(last) }, 'the upstream still limits the rate');
      },
    });
  return {
    tell(event) {
      let damper = dampers.get(event.route);
      if (damper === undefined) dampers.set(event.route, (damper = createFor()));
      damper.tell(event);
    },
    stop() {
      for (const damper of dampers.values()) damper.stop();
    },
  };
}

function rateLimitFields({ route, status, pauseMs, stated, fields }: RateLimited): LogFields {
  return { route, status, pauseMs: Math.round(pauseMs), stated, rateLimitFields: fields };
}

function cut(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}…`;
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
