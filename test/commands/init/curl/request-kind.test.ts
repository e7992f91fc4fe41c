/** A command is a token request only if it shows one; the ways to break its lines change nothing. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readPartnerText } from '../../../../src/commands/init/partner-text.ts';
import { printCurl, printedRequests, styles } from './curl-printer.ts';

const API = 'https://api.example.com';

const SHOWN_PATHS = [
  '/oauth/token',
  '/oauth2/v2.0/token',
  '/oauth2/default/v1/token',
  '/realms/a/protocol/openid-connect/token',
  '/connect/token',
  '/oauth/client_credential/accesstoken',
  '/api/v1/access_token',
  '/v1/getAccessToken',
  '/as/token.oauth2',
  '/auth/token/v2',
  '/oauth2/generate',
  '/api/login',
  '/v1/auth',
];
const OTHER_PATHS = [
  '/tokens-of-appreciation/authors',
  '/authors',
  '/loginpage',
  '/v1/tokens',
  '/connections/7',
  '/unauthorized',
  '/2010-04-01/Accounts/AC1/Messages.json',
  '',
];

test.each(SHOWN_PATHS)('%s with HTTP Basic and no body is a token request', (path) => {
  const reading = readPartnerText(`curl -X POST -u a:b ${API}${path}`);
  expect(reading).toMatchObject({ kind: 'command', command: { tokenUrl: API + path } });
});

test.each(OTHER_PATHS)('%s with HTTP Basic and any body is an API call', (path) => {
  for (const body of [
    '',
    "-d 'name=x'",
    '-d @file',
    '-F a=b',
    `--json '{"a":{"b":[1]}}'`,
    '-d scope=read',
    '-d client_id=a',
  ])
    expect(readPartnerText(`curl -X POST -u a:b ${API}${path} ${body}`)).toMatchObject({
      kind: 'command',
      command: { tokenUrl: undefined, secret: 'YTpi' },
    });
});

test.each(OTHER_PATHS)(
  '%s with a client id and a client secret as fields, or a grant type, is a token request',
  (path) => {
    for (const fields of ['-d client_id=a -d client_secret=b', '-u a:b -d grant_type=client_credentials'])
      expect(readPartnerText(`curl ${API}${path} ${fields}`)).toMatchObject({
        command: { tokenUrl: `${API}${path || '/'}` },
      });
  },
);

const WORD = fc
  .string({ unit: fc.constantFrom(...Array.from('abcdefghijklmnopqrstuvwxyz0123456789')), minLength: 1, maxLength: 12 })
  .filter((word) => !/token|oauth|connect|login|auth|grant|secret/.test(word));
const quote = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;
const BODY = fc.oneof(
  fc.constant(''),
  fc
    .tuple(WORD, fc.string({ unit: 'grapheme-ascii' }))
    .map(([name, value]) => `--data-urlencode ${quote(`${name}=${value}`)}`),
  fc.tuple(WORD, WORD).map(([name, value]) => `-d ${name}=${value} -d client_id=x`),
  fc.dictionary(WORD, fc.json()).map((value) => `--json ${quote(JSON.stringify(value))}`),
  WORD.map((name) => `-F ${name}=x`),
);

test('an API call with HTTP Basic never becomes a token request', () => {
  const method = fc.constantFrom('', '-X POST', '-X PUT', '-X DELETE', '-X PATCH');
  fc.assert(
    fc.property(fc.array(WORD, { maxLength: 5 }), method, BODY, WORD, (path, by, body, secret) => {
      const reading = readPartnerText(`curl ${by} ${API}/${path.join('/')} -u ${secret}:x${secret} ${body}`);
      expect(reading).toMatchObject({
        kind: 'command',
        command: { tokenUrl: undefined, secret: Buffer.from(`${secret}:x${secret}`).toString('base64') },
      });
      if (reading.kind !== 'command') return;
      expect(Object.fromEntries(reading.command.settings)).toMatchObject({
        'upstream.baseUrl': API,
        'auth.method': 'static',
        'upstream.tokenPrefix': 'Basic ',
      });
    }),
    { numRuns: 1000 },
  );
});

const LINE_BREAKS = ['\n  ', '\n', ' \\ \n  ', '\\\n ', ' \\ ', ' \\   ', ' ', '\n\n  '];

test('a command whose lines lost their backslashes, or were joined, gives the same settings', () => {
  const breaks = fc.array(fc.constantFrom(...LINE_BREAKS), { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(printedRequests('https://login.example.com'), styles('posix'), breaks, (request, style, others) => {
      const { text } = printCurl(request, style);
      let next = 0;
      const changed = text.replaceAll(' \\\n  ', () => others[next++ % others.length] ?? ' ');
      expect(readPartnerText(changed)).toEqual(readPartnerText(text));
    }),
    { numRuns: 500 },
  );
});

test('a blank between an option and the backslash that is lost is named, never dropped', () => {
  for (const text of [`curl -X POST\\ -u a:b ${API}/oauth/token`, `curl -u\na:b -X POST ${API}/oauth/token`])
    expect(readPartnerText(text)).toMatchObject({
      kind: 'refused',
      fault: expect.stringContaining('backslash') as string,
    });
});
