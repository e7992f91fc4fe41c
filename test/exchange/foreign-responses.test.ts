/** Which responses with a status below 400 are none of the API: by what the operation did before, and what the application can read. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ForeignResponses } from '../../src/exchange/foreign-responses.ts';

const URL_OF_CALL = 'https://api.partner.example/v1/orders/7';
const HTML = ['text/html', 'text/html; charset=utf-8', 'Text/HTML;charset="utf-8"', ' application/xhtml+xml'];
const API = [
  'application/json',
  'Application/Problem+JSON; charset=utf-8',
  'text/xml',
  'application/soap+xml',
  undefined,
];

interface Played {
  readonly status?: number;
  readonly type?: string | undefined;
  readonly location?: string;
  readonly accept?: string | undefined;
  readonly operation?: string;
}

function play(responses: readonly Played[], foreign = new ForeignResponses()): string | undefined {
  let last: string | undefined;
  for (const { status = 200, type, location, accept, operation = 'GET /v1/orders/*' } of responses) {
    const headers = location === undefined ? [] : ['LOCATION', location];
    const head = { status, statusText: '', headers, contentType: type };
    last = foreign.describe(head, { operation, url: URL_OF_CALL, accept });
  }
  return last;
}

const json: Played = { type: 'application/json' };
const page: Played = { type: 'text/html; charset=utf-8' };

describe('a redirect to another path of the same server', () => {
  const moved = '301 to another path of the same server instead of JSON';

  it.each([
    [301, '/v2/orders/7', moved],
    [308, 'https://api.partner.example/v2/orders/7', moved.replace('301', '308')],
    [302, '/v2/orders/7', undefined],
    [303, '/v1/results/7', undefined],
  ])('after JSON, %i to %s: %s', (status, location, expected) => {
    expect(play([json, { status, location }])).toBe(expected);
  });

  it('from the start is how the operation responds', () => {
    const redirect = { status: 301, location: '/v2/orders/7' };
    expect(play([redirect, redirect])).toBe(undefined);
  });
});

describe('a web page', () => {
  it.each(HTML.flatMap((type) => API.map((before) => [type, before])))('%j after %j is foreign', (type, before) => {
    expect(play([{ type: before }, { type }])).toMatch(
      /^200 with \S+html\S* instead of (?:JSON|XML|a response of the API)$/i,
    );
  });

  it.each([undefined, '*/*', 'application/json', 'application/json, text/html;q=0', 'text/html;q=0.0,*/*'])(
    'after JSON is foreign for Accept: %j',
    (accept) => expect(play([json, { ...page, accept }])).toBe('200 with text/html instead of JSON'),
  );

  it('after JSON is foreign for the field that the JDK sends by itself', () => {
    const accept = 'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2';
    expect(
      play([
        { ...json, accept },
        { ...page, accept },
      ]),
    ).toBe('200 with text/html instead of JSON');
  });

  it.each(['text/html', 'application/xhtml+xml, application/xml;q=0.9', 'application/json, Text/HTML;q=0.1'])(
    'that is asked for is never foreign: %s',
    (accept) => expect(play([json, { ...page, accept }, { ...page, accept }])).toBeUndefined(),
  );

  it.each([204, 205, 304])('needs content: %i', (status) => {
    expect(play([json, { ...page, status }])).toBeUndefined();
  });

  it('of an operation that begins with pages is its own, also with JSON at times', () => {
    const pageOrJson = fc.array(fc.constantFrom(json, page), { maxLength: 50 });
    const accept = fc.constantFrom(undefined, '*/*', 'text/html', 'text/*');
    fc.assert(
      fc.property(pageOrJson, accept, (responses, accepted) => {
        const foreign = new ForeignResponses();
        for (const response of [page, ...responses])
          expect(play([{ ...response, accept: accepted }], foreign)).toBeUndefined();
      }),
    );
  });

  it('of another operation than those that respond with JSON is its own', () => {
    expect(play([json, { ...page, operation: 'GET /report' }])).toBeUndefined();
  });

  it('is foreign from the start where the application reads JSON only, until the API responds', () => {
    const accept = 'application/json, application/*+json';
    const foreign = new ForeignResponses();
    expect(
      play(
        [
          { ...page, accept },
          { ...page, accept },
        ],
        foreign,
      ),
    ).toBe('200 with text/html instead of JSON');
    expect(
      play(
        [
          { ...json, accept },
          { ...page, accept },
        ],
        foreign,
      ),
    ).toBeUndefined();
  });

  it('is foreign where paths contain names, so that no operation repeats', () => {
    const named = (response: Played, count: number): Played[] =>
      Array.from({ length: count }, (_, at) => ({
        ...response,
        operation: `GET /customers/${'abcdefgh'.at(at % 8) ?? ''}${String(at)}`,
      }));
    expect(play([...named(json, 600), { ...page, operation: 'GET /customers/jane' }])).toMatch(/^200 with text\/html/);
    expect(play([...named(page, 600), { ...page, operation: 'GET /customers/jane' }])).toBeUndefined();
  });

  it('a picture, a style sheet or a text says nothing', () => {
    for (const type of ['image/svg+xml', 'text/css', 'text/plain'])
      expect(play([{ type }, { ...page, operation: 'GET /v1/orders/*' }])).toBeUndefined();
  });
});

describe('a redirect', () => {
  it.each([
    ['https://login.sso.example/authorize?x=1', 'login.sso.example'],
    ['//login.sso.example/', 'login.sso.example'],
    ['\\\\login.sso.example/', 'login.sso.example'],
    ['https://api.partner.example:8443/v1', 'api.partner.example:8443'],
    ['https://api.partner.example@login.sso.example/', 'login.sso.example'],
    ['partner-app:login', 'partner-app:'],
  ])('to %s leaves', (location, server) => {
    for (const status of [300, 301, 302, 303, 307, 308])
      expect(play([json, { status, location }])).toBe(`${String(status)} to ${server} instead of JSON`);
  });

  it.each([
    '',
    '/',
    '/login',
    'login',
    '../x',
    '?page=2',
    '//api.partner.example/x',
    'https://API.partner.example:443/v1',
    'http://api.partner.example/v1',
    'https://[',
    'http:',
  ])('to %j stays', (location) => expect(play([json, { status: 302, location }])).toBeUndefined());

  it('without a Location, a 304 with one, and a 201 with one are none', () => {
    expect(play([json, { status: 302 }])).toBeUndefined();
    expect(play([json, { status: 304, location: 'https://x.example' }])).toBeUndefined();
    expect(play([json, { status: 201, location: 'https://x.example', type: 'application/json' }])).toBeUndefined();
  });

  it('that an operation gives from its start, as for a download, is its own', () => {
    const download = { status: 302, location: 'https://storage.example/file', operation: 'GET /files/*' };
    expect(play([json, download, download])).toBeUndefined();
  });
});

it('describes an operation by the type with which it responds now', () => {
  const foreign = new ForeignResponses();
  play([json, { type: 'text/xml' }], foreign);
  expect(foreign.usualTypes.get('GET /v1/orders/*')).toBe('text/xml');
});
