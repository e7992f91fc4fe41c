/** Fixed query parameters: what is sent of a client's query, and what a client gets to see of the sidecar's. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createAddedQuery } from '../../src/upstream/added-query.ts';
import { rewriteLink, rewriteReference, rewriteRefresh } from '../../src/upstream/references.ts';
import type { ClientView } from '../../src/upstream/client-view.ts';

const OWN = [
  ['api_key', 's3cret &=#+%/ü 1'],
  ['Sig Natür', ''],
] as const;
const query = createAddedQuery(OWN, (text) => text.replaceAll('s3cret', '********'));
const ADDED = 'api_key=s3cret%20%26%3D%23%2B%25%2F%C3%BC%201&Sig%20Nat%C3%BCr=';

/** A name of ours as a client may write it: in other case, with any characters percent-encoded. */
const ownName = fc
  .tuple(fc.constantFrom(...OWN.map(([name]) => name)), fc.infiniteStream(fc.constantFrom(0, 1, 2)))
  .map(([name, ways]) =>
    Array.from(name)
      .map((char) => {
        const way = Number(ways.next().value);
        const cased = way === 1 && char !== 'ü' ? char.toUpperCase() : char;
        if (cased === ' ') return way === 2 ? '+' : '%20';
        const bytes = [...Buffer.from(cased)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
        return way === 2 || cased === 'ü' ? bytes : cased;
      })
      .join(''),
  );
const piece = fc.constantFrom(
  'a',
  'B',
  ';',
  '+',
  '%00',
  '%',
  '%zz',
  '%26',
  '%3D',
  '?',
  '/',
  '%C3',
  "'",
  '.',
  'api_key',
);
const text = fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join(''));
/** None of them decodes to a name of ours. */
const otherName = fc.oneof(
  text.filter((name) => name !== 'api_key'),
  fc.constantFrom('', 'api_key%00', 'api%255Fkey', 'api_key[]', 'api_keys', 'a;api_key', 'api-key', '+api_key'),
);
const value = fc.oneof(text, fc.constantFrom('api_key=x', 'x==', 'ä')).map((one) => `=${one}`);
const parameter = fc.oneof(
  { weight: 2, arbitrary: fc.tuple(otherName, fc.oneof(value, fc.constant(''))) },
  fc.tuple(ownName, fc.oneof(value, fc.constant(''))),
);

describe('a query that is sent', () => {
  test('keeps all but the parameters of these names byte for byte, in order, and ends with ours', () => {
    const isOwn = (name: string) => {
      const [, decoded = ''] = new URLSearchParams(`first&${name}=`).keys();
      return OWN.some(([own]) => own.toLowerCase() === decoded.toLowerCase());
    };
    fc.assert(
      fc.property(fc.array(parameter, { minLength: 1, maxLength: 8 }), (parameters) => {
        const kept = parameters.filter(([name]) => !isOwn(name)).map((one) => one.join(''));
        const before = kept.length === 0 || kept.join('&') === '' ? '' : `${kept.join('&')}&`;
        const sent = query.addTo(`/v1/a?${parameters.map((one) => one.join('')).join('&')}`);
        expect(sent).toBe(`/v1/a?${before}${ADDED}`);
        // A server that decodes it finds each of ours once, with its value.
        const decoded = [...new URLSearchParams(`first&${sent.slice('/v1/a?'.length)}`)];
        for (const [name, own] of OWN)
          expect(decoded.filter(([one]) => one.toLowerCase() === name.toLowerCase())).toEqual([[name, own]]);
      }),
      { numRuns: 2000 },
    );
  });

  test('has ours alone when the client sends none', () => {
    expect(query.addTo('/')).toBe(`/?${ADDED}`);
    expect(query.addTo('/a?')).toBe(`/a?${ADDED}`);
    expect(query.addTo('/a?API%5FKEY=mine')).toBe(`/a?${ADDED}`);
  });
});

describe('a reference of a response', () => {
  const view: ClientView = {
    baseUrl: new URL('https://api.partner.example/v1'),
    requestPath: '/v1/a',
    clientPath: (path) => path,
    cookieRoot: undefined,
    addedQuery: query,
  };

  test('to the upstream has no parameter of these names', () => {
    const own = fc.tuple(ownName, value).map((one) => one.join(''));
    const other = fc.constantFrom('page=2', 'x', '', 'next=%2Fb%3Fc', 'e=f;g');
    fc.assert(
      fc.property(
        fc.constantFrom('https://api.partner.example/v1/b', '/v1/b', 'http://api.partner.example/v1/b', 'b'),
        fc.array(other, { maxLength: 3 }),
        own,
        fc.constantFrom('', '#part'),
        (start, others, added, fragment) => {
          const reference = `${start}?${[...others, added].join('&')}${fragment}`;
          const kept = others.length === 0 ? '' : `?${others.join('&')}`;
          expect(rewriteReference(reference, view)).toBe(`/b${kept}${fragment}`);
          expect(rewriteLink(`<${reference}>; rel=next`, view)).toBe(`</b${kept}${fragment}>; rel=next`);
          expect(rewriteRefresh(`5; url=${reference}`, view)).toBe(`5; url=/b${kept}${fragment}`);
        },
      ),
    );
  });

  test.each([
    ['/v1/b?page=2&api_key=another', '/b?page=2'],
    ['https://api.partner.example/other?Api_Key=x&page=2', 'https://api.partner.example/other?page=2'],
    ['https://files.example/b?api_key=theirs&page=2', 'https://files.example/b?api_key=theirs&page=2'],
    [`https://files.example/b?${ADDED}&page=2`, 'https://files.example/b?page=2'],
    ['http://[broken/?api_key=s3cret&page=2', 'http://[broken/?page=2'],
    ['?page=2&api_key=s3cret', '/a?page=2'],
  ])('%s becomes %s', (reference, expected) => {
    expect(rewriteReference(reference, view)).toBe(expected);
  });
});
