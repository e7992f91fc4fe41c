/**
 * `bearer-sidecar status`: the state of a running sidecar, once or until it is stopped. On a terminal --watch redraws the screen;
 * elsewhere it prints a line for each reading.
 */
import { formatInstant } from '../../platform/instant-text.ts';
import type { ListenAddress } from '../../platform/host-header.ts';
import type { LoadOptions } from '../../config/load/load.ts';
import { toSingleLine } from '../../config/load/problems.ts';
import { sleep, systemClock, type Clock } from '../../platform/clock.ts';
import { loadAdminAddress } from '../admin-port.ts';
import { failWith, paintFor, type Paint } from '../terminal.ts';
import { readRunningStatus, type StatusReading } from './running-status.ts';
import { describeState, describeStatusLine, describeStatusLines } from './summary.ts';

export interface StatusOptions {
  /** The document of /status instead of text. */
  readonly json: boolean;
  /** Again and again until `stop`. */
  readonly watch: boolean;
}

const REDRAW_INTERVAL_MS = 1000;
const LINE_INTERVAL_MS = 2000;
const DEFAULT_ROWS = 23;
const WRAP_OFF = '\u001b[?7l';
const WRAP_ON = '\u001b[?7h';
const CURSOR_HOME = '\u001b[H';
const ERASE_LINE_END = '\u001b[K';
const ERASE_BELOW = '\u001b[J';

/** @returns 0 when requests can be served, 1 when not or without a response, 2 for wrong settings; with `watch` 0 once it is stopped */
export async function status(load: LoadOptions, options: StatusOptions, stop: AbortSignal): Promise<number> {
  const address = loadAdminAddress(load);
  if (address === undefined) return 2;
  if (options.watch) {
    const { stdout } = process;
    const isScreen = stdout.isTTY && process.env.TERM !== 'dumb' && !options.json;
    await watchStatus({
      read: () => readRunningStatus(address, stop),
      write: (text) => void stdout.write(text),
      format: options.json ? formatJson : isScreen ? formatScreen(stdout) : formatLine(systemClock),
      intervalMs: isScreen ? REDRAW_INTERVAL_MS : LINE_INTERVAL_MS,
      clock: systemClock,
      stop,
    });
    return 0;
  }
  return showStatus(address, options, stop);
}

async function showStatus(address: ListenAddress, { json }: StatusOptions, stop: AbortSignal): Promise<number> {
  const reading = await readRunningStatus(address, stop);
  if (reading.kind === 'unavailable') return failWith(1, reading.why);
  process.stdout.write(json ? formatJson(reading) : formatSummary(reading, paintFor(process.stdout)));
  return describeState(reading.status).isServing ? 0 : 1;
}

export interface WatchOptions {
  readonly read: () => Promise<StatusReading>;
  readonly write: (text: string) => void;
  readonly format: (reading: StatusReading) => string;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly stop: AbortSignal;
}

/** Writes a reading, waits, and so on until `stop`. A sidecar that does not respond is a reading too. */
export async function watchStatus({ read, write, format, intervalMs, clock, stop }: WatchOptions): Promise<void> {
  for (let reading = await read(); !stop.aborted; reading = await read()) {
    write(format(reading));
    await sleep(clock, intervalMs, stop);
  }
}

function formatSummary(reading: StatusReading, paint: Paint): string {
  const lines = reading.kind === 'read' ? describeStatusLines(reading.status, paint) : [toSingleLine(reading.why)];
  return `${lines.join('\n')}\n`;
}

function formatJson(reading: StatusReading): string {
  return `${JSON.stringify(reading.kind === 'read' ? reading.status : { unavailable: reading.why })}\n`;
}

/** Overwrites the screen in place, so that it does not flicker. What does not fit is cut off. */
export function formatScreen(stream: NodeJS.WriteStream): (reading: StatusReading) => string {
  return (reading) => {
    const lines = formatSummary(reading, paintFor(stream)).trimEnd().split('\n');
    const rows = stream.rows > 1 ? stream.rows - 1 : DEFAULT_ROWS;
    const shown = lines.slice(0, rows).map((line) => `${line}${ERASE_LINE_END}\n`);
    return `${WRAP_OFF}${CURSOR_HOME}${shown.join('')}${ERASE_BELOW}${WRAP_ON}`;
  };
}

/** @param clock for the time of the line */
export function formatLine(clock: Pick<Clock, 'wallNow'>): (reading: StatusReading) => string {
  return (reading) => {
    const words = reading.kind === 'read' ? describeStatusLine(reading.status) : toSingleLine(reading.why);
    return `${formatInstant(clock.wallNow())} ${words}\n`;
  };
}
