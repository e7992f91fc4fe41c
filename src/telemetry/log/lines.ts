/** Writes log lines with pino: JSON with the time of the event, in the order of the events. */
import { pino } from 'pino';
import type { Logger } from 'pino';
import type { Clock } from '../../platform/clock.ts';
import type { LogLevel } from '../events.ts';
import { levelOfRequest, type DescribeAccess } from './access-lines.ts';
import type { LogSink } from './log-sink.ts';
import { RequestLogBatch } from './request-lines.ts';

export interface EventLoggerOptions {
  readonly level: LogLevel;
  readonly clock: Clock;
  readonly sink: LogSink;
  readonly describeRequest: DescribeAccess;
}

/** A logger, and the batch of requests; every other line is written after the requests of the batch. */
export function createEventLogger({ level, clock, sink, describeRequest }: EventLoggerOptions): {
  readonly logger: Logger;
  readonly requests: RequestLogBatch;
} {
  let eventWallAt: number | undefined;
  const logger = createPinoLogger(
    level,
    () => eventWallAt ?? clock.wallNow(),
    (line) => {
      requests.writeAll();
      sink.write(line);
    },
  );
  const requests = new RequestLogBatch({
    clock,
    writeLine(event, wallAt) {
      const fields = describeRequest(event);
      eventWallAt = wallAt;
      if (fields !== undefined) logger[levelOfRequest(event)](fields, 'request');
      eventWallAt = undefined;
    },
    onBatch: () => sink.flush(),
  });
  return { logger, requests };
}

function createPinoLogger(level: LogLevel, wallNow: () => number, write: (line: string) => void): Logger {
  let formattedAt = NaN;
  let formatted = '';
  return pino(
    {
      level,
      base: null,
      // Several lines often have the same time: it is formatted once.
      timestamp: () => {
        const at = wallNow();
        if (at !== formattedAt) formatted = `,"time":"${new Date((formattedAt = at)).toISOString()}"`;
        return formatted;
      },
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  );
}
