/** For any behaviour of the destination: whole lines in order, each written or counted. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LogSink } from '../../../src/telemetry/log/log-sink.ts';
import { anyCodePoint } from '../../support/code-points.ts';
import { ManualClock } from '../../support/manual-clock.ts';

type Outcome = { readonly takes: number } | { readonly code: string };
type Step = { readonly lines: readonly string[] } | { readonly waitMs: number };

const outcomes = fc.array(
  fc.oneof(
    fc.nat({ max: 40_000 }).map((takes): Outcome => ({ takes })),
    fc.constant<Outcome>({ takes: Infinity }),
    fc.constantFrom('EAGAIN', 'ENOSPC', 'EIO', 'EPIPE', 'ENOBUFS').map((code): Outcome => ({ code })),
  ),
  { maxLength: 60 },
);
const text = fc
  .tuple(fc.string({ unit: anyCodePoint, maxLength: 12 }), fc.constantFrom(1, 1, 1, 900))
  .map(([part, times]) => part.replaceAll('\n', ' ').repeat(times).toWellFormed());
const steps = fc.array(
  fc.oneof(
    fc.array(text, { minLength: 1, maxLength: 40 }).map((lines): Step => ({ lines })),
    fc.nat({ max: 8000 }).map((waitMs): Step => ({ waitMs })),
  ),
  { maxLength: 25 },
);

/** Does what the list says, then takes everything, or nothing more. */
function createDestination(list: readonly Outcome[], isWellAtEnd: boolean) {
  const left = [...list];
  const taken: Uint8Array[] = [];
  return {
    text: () => Buffer.concat(taken).toString('utf8'),
    isListDone: () => left.length === 0,
    write(bytes: Uint8Array): number {
      const outcome = left.shift() ?? (isWellAtEnd ? { takes: Infinity } : { code: 'ENOSPC' });
      if ('code' in outcome) throw Object.assign(new Error(outcome.code), { code: outcome.code });
      const part = Uint8Array.from(bytes.subarray(0, outcome.takes));
      taken.push(part);
      return part.length;
    },
  };
}

it('writes whole lines in order, and writes or counts each line', async () => {
  await fc.assert(
    fc.asyncProperty(outcomes, steps, fc.boolean(), async (list, todo, isWellAtEnd) => {
      const clock = new ManualClock();
      const destination = createDestination(list, isWellAtEnd);
      const given: string[] = [];
      const give = (line: string): void => {
        given.push(line);
        sink.write(`${line}\n`);
      };
      const onRecovered = ({ lostLines }: { readonly lostLines: number }): void => {
        give(`notice of ${String(lostLines)}`);
      };
      const sink = new LogSink({ writer: destination, clock, onRecovered });
      for (const step of todo) {
        if ('waitMs' in step) await clock.advance(step.waitMs);
        else for (const line of step.lines) give(`${String(given.length)} ${line}`);
      }
      const beforeEnd = sink.droppedLines;
      if (isWellAtEnd) {
        await clock.advance(600_000);
        // Without a reader nothing is kept that could be tried: the next line is. A notice that close writes must meet no fault, either.
        const isWell = (): boolean => destination.isListDone() && sink.deliveryProblem === undefined;
        for (let tries = 0; tries <= list.length && !isWell(); tries++) {
          give(`last ${String(tries)}`);
          await clock.advance(10_000);
        }
      }
      const closing = sink.close(500);
      await clock.advance(500);
      await closing;

      const written = destination.text().split('\n');
      const torn = written.pop() ?? '';
      expect(written.length + sink.droppedLines).toBe(given.length);
      if (isWellAtEnd) expect(torn).toBe('');
      if (isWellAtEnd) expect(sink.deliveryProblem).toBeUndefined();
      expect(sink.droppedLines).toBeGreaterThanOrEqual(beforeEnd);
      let at = -1;
      for (const line of written) expect((at = given.indexOf(line, at + 1))).toBeGreaterThanOrEqual(0);
      // At the very end alone a line may be left without its end.
      if (torn !== '') expect(given.slice(at + 1).some((line) => isBeginning(torn, line))).toBe(true);
      expect(clock.pendingTimers).toBe(0);
    }),
    { numRuns: 1000 },
  );
});

/** Cut within a character, bytes are no text. */
function isBeginning(torn: string, line: string): boolean {
  return line.startsWith(torn.replace(/\ufffd+$/, ''));
}

it('reports every dropped line once', async () => {
  const clock = new ManualClock();
  const reported: number[] = [];
  const writer = { write: (bytes: Uint8Array): number => (clock.now() % 7000 < 3000 ? 0 : bytes.length) };
  const sink = new LogSink({ writer, clock, onRecovered: ({ lostLines }) => reported.push(lostLines) });
  for (let second = 0; second < 50; second++) {
    for (let line = 0; line < 1500; line++) sink.write(`${'x'.repeat(900)}\n`);
    await clock.advance(1000);
  }
  await clock.advance(10_000);
  expect(sink.droppedLines).toBeGreaterThan(1000);
  expect(reported.reduce((sum, lines) => sum + lines, 0)).toBe(sink.droppedLines);
  expect(reported.length).toBeLessThanOrEqual(13);
});
