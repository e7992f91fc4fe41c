/** When a body is decided about, and that its memory is given back. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RefusalInspector } from '../../../src/exchange/refusals/refusal-inspector.ts';
import { RequestLifetime } from '../../../src/exchange/request-lifetime.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const MAX_BYTES = 64 * 1024;

it('decides once, as soon as a text has come or 64 KiB, and gives all memory back', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(40_000), { maxLength: 12 }),
      fc.array(fc.constantFrom('ab', 'cde', 'ü'), { minLength: 1, maxLength: 3 }),
      fc.nat(100_000),
      fc.constantFrom('end', 'cancel', 'deadline' as const),
      async (sizes, texts, textAt, last) => {
        const body = Buffer.alloc(
          sizes.reduce((sum, size) => sum + size, 0),
          '.',
        );
        const [text = ''] = texts;
        if (textAt < body.length) body.write(text, textAt);
        const hasText = textAt + Buffer.byteLength(text) <= Math.min(body.length, MAX_BYTES);
        let heldBytes = 0;
        const clock = new ManualClock();
        const lifetime = new RequestLifetime(clock, 1000);
        const decisions: boolean[] = [];
        const decidedAfter: number[] = [];
        let written = 0;
        const inspector = new RefusalInspector({
          texts: texts.map((each) => Buffer.from(each)),
          lifetime,
          memory: { forceTake: (bytes) => (heldBytes += bytes), giveBack: (bytes) => (heldBytes -= bytes) },
          decide: (isRefusal) => {
            decisions.push(isRefusal);
            return 'hold';
          },
        });
        inspector.begin(() => decidedAfter.push(written));
        for (const size of sizes) {
          const chunk = body.subarray(written, written + size);
          written += size;
          inspector.write(chunk);
          expect(heldBytes).toBe(decisions.length > 0 ? 0 : written);
          if (decisions.length > 0) break;
        }
        const isOpen = decisions.length === 0;
        expect(isOpen).toBe(!hasText && written < MAX_BYTES);
        if (isOpen && last === 'end') inspector.end();
        else if (isOpen && last === 'deadline') await clock.advance(1000);
        else if (isOpen) inspector.cancel();
        expect(decisions).toEqual(isOpen && last === 'cancel' ? [] : [hasText]);
        expect(decidedAfter).toHaveLength(decisions.length);
        expect(heldBytes).toBe(0);
        expect(lifetime.onDeadline).toBeUndefined();
      },
    ),
    { numRuns: 300 },
  );
});
