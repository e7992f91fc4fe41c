/** How a line is written: pino's JSON with the time at which it happened, in the order in which things happened. */
import { pino } from 'pino';
import type { Logger } from 'pino';
import type { Clock } from '../../platform/clock.ts';
import type { DescribeAccess } from './access-lines.ts';
import type { LogSink } from './log-sink.ts';
import { RequestLogBatch } from './request-lines.ts';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

export interface EventLoggerOptions {
  readonly level: LogLevel;
  readonly clock: Clock;
  readonly sink: LogSink;
  readonly describeRequest: DescribeAccess;
}

/** A logger, and the requests whose lines are written many at a time; whatever else it writes comes behind them. */
export function createEventLogger({ level, clock, sink, describeRequest }: EventLoggerOptions): {
  readonly logger: Logger;
  readonly requests: RequestLogBatch;
} {
  let happenedAt: number | undefined;
  const logger = createPinoLogger(
    level,
    () => happenedAt ?? clock.wallNow(),
    (line) => {
      requests.writeAll();
      sink.write(line);
    },
  );
  const requests = new RequestLogBatch({
    clock,
    writeLine(event, wallAt) {
      const fields = describeRequest(event);
      happenedAt = wallAt;
      if (fields !== undefined) logger.info(fields, 'request');
      happenedAt = undefined;
    },
    onBatch: () => sink.flush(),
  });
  return { logger, requests };
}

function createPinoLogger(level: LogLevel, wallNow: () => number, write: (line: string) => void): Logger {
  let writtenAt = NaN;
  let written = '';
  return pino(
    {
      level,
      base: null,
      // Lines come in bunches: an instant is spelt out once.
      timestamp: () => {
        const at = wallNow();
        if (at !== writtenAt) written = `,"time":"${new Date((writtenAt = at)).toISOString()}"`;
        return written;
      },
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  );
}
