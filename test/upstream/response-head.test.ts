/** A response head as it is received: which headers go to the client, and what the others say. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { ResponseClassifier } from '../../src/exchange/response-classifier.ts';
import { createRefusalRules } from '../../src/exchange/refusals/refusal-rules.ts';
import { rewriteResponseHeaders } from '../../src/upstream/headers.ts';
import { readResponseHead } from '../../src/upstream/upstream-response.ts';

function read(headers: readonly string[], status = 200) {
  return readResponseHead(
    status,
    'OK',
    headers.map((text) => Buffer.from(text, 'latin1')),
  );
}

const NAMES = [
  ...['Content-Type', 'X-Hop', 'x-hop', 'Date', 'Retry-After', 'X-RateLimit-Remaining', 'X-Request-Id', 'Vary'],
  ...['Connection', 'connection', 'Keep-Alive', 'Transfer-Encoding', 'Trailer', 'Upgrade', 'x_hop'],
];
const VALUES = ['close', 'keep-alive', 'x-hop', 'X-HOP, vary', 'chunked', '1', ''];

it('has the end-to-end headers that the rules for any list of headers give, and all others apart', () => {
  const field = fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(...VALUES));
  const unused = (): never => expect.fail('no value is rewritten');
  fc.assert(
    fc.property(fc.array(field, { maxLength: 12 }), (fields) => {
      const raw = fields.flat();
      const head = read(raw);
      expect(head.headers).toEqual(rewriteResponseHeaders(raw, unused, undefined));
      const pairs = (list: readonly string[]) =>
        list.filter((_, at) => at % 2 === 0).map((name, at) => [name, list[2 * at + 1]].join());
      expect([...pairs(head.headers), ...pairs(head.connectionHeaders ?? [])].toSorted()).toEqual(
        pairs(raw).toSorted(),
      );
      expect(head.mayStateLimit).toBe(
        raw.some((name, at) => at % 2 === 0 && /^(?:retry-after|x-ratelimit)/i.test(name)),
      );
    }),
  );
});

it('says that values are rewritten for the client where a header has such a value', () => {
  expect(read(['Location', '/v1/a']).isRewritten).toBe(true);
  expect(read(['set-cookie', 'a=1; Secure']).isRewritten).toBe(true);
  expect(read(['X-Location', '/v1/a']).isRewritten).toBe(false);
});

it('is a refusal also by a header of the connection, where a rule names one', () => {
  const evaluate = createRefusalRules([{ status: 503, header: 'Connection: close' }])!;
  expect(evaluate(read(['Date', 'x', 'Connection', 'close'], 503))).toBe(true);
  expect(evaluate(read(['Date', 'x', 'Connection', 'keep-alive'], 503))).toBe(false);
});

it('states its wait and its id also where Connection names their headers', () => {
  const raw = ['Connection', 'retry-after, x-request-id', 'Retry-After', '30', 'X-Request-Id', 'r-1'];
  const head = read(raw, 429);
  const clock = new ManualClock();
  const classifier = new ResponseClassifier({ route: 'default', replicas: 1, clock, observe: () => undefined });
  expect(classifier.classify(head).statedWaitMs).toBe(30_000);
  expect(head.requestId).toBe('r-1');
  expect(head.headers).toEqual([]);
});
