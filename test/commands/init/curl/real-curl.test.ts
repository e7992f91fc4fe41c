/** What init understands of a command is what the real curl sends for it, through a real shell. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPartnerText } from '../../../../src/commands/init/partner-text.ts';
import { joinUrl } from '../../../../src/config/schema/formats/url.ts';
import { startRecordingUpstream } from '../../../support/recording-upstream.ts';
import type { RecordedRequest, RecordingUpstream } from '../../../support/recording-upstream.ts';
import { printCurl, printedRequests, styles } from './curl-printer.ts';

const run = promisify(execFile);
let recorder: RecordingUpstream;

beforeAll(async () => {
  recorder = await startRecordingUpstream((_, response) => {
    response.end('{}');
  });
});
afterAll(() => recorder[Symbol.asyncDispose]());

/** One request, as curl sent it. */
async function send(text: string): Promise<RecordedRequest> {
  const before = recorder.requests.length;
  await run('bash', ['-c', text], { env: { PATH: process.env.PATH ?? '', LC_ALL: 'C.UTF-8' } });
  const [request, ...more] = recorder.requests.slice(before);
  if (request === undefined || more.length > 0) throw new Error('expected one request');
  return request;
}

/** The client, the fields and the path of a request, whichever way they were sent. */
function readSent({ path, headers, body }: RecordedRequest) {
  const [scheme = '', credentials = ''] = (headers.authorization ?? '').split(' ');
  const text = body.toString();
  const isJson = text.startsWith('{');
  const fields = new Map(
    isJson ? Object.entries(JSON.parse(text) as Record<string, string>) : new URLSearchParams(text),
  );
  const pair = Buffer.from(credentials, 'base64').toString();
  const basic =
    scheme.toLowerCase() === 'basic'
      ? { id: pair.split(':', 1)[0], secret: pair.slice(pair.indexOf(':') + 1) }
      : undefined;
  return {
    path,
    client: basic ?? { id: fields.get('client_id'), secret: fields.get('client_secret') },
    method: basic === undefined ? 'client_secret_post' : 'client_secret_basic',
    audience: fields.get('audience'),
    scope: fields.get('scope'),
    tenant: fields.get('tenant'),
  };
}

function readUnderstood(text: string): ReturnType<typeof readSent> {
  const reading = readPartnerText(text);
  if (reading.kind !== 'command') throw new Error(JSON.stringify(reading));
  const { settings, secret } = reading.command;
  const url = joinUrl(settings.get('auth.url') ?? '', settings.get('auth.tokenPath') ?? '');
  expect(url.origin).toBe(recorder.url);
  const { tenant } = JSON.parse(settings.get('auth.extraParameters') ?? '{}') as Record<string, string>;
  return {
    path: url.pathname + url.search,
    client: { id: settings.get('auth.clientId'), secret },
    method: settings.get('auth.method') ?? '',
    audience: settings.get('auth.audience'),
    scope: settings.get('auth.scope'),
    tenant,
  };
}

test('for generated commands', async () => {
  await fc.assert(
    fc.asyncProperty(printedRequests(recorder.url), styles('posix'), async (request, style) => {
      const { text } = printCurl(request, style);
      expect(readUnderstood(text)).toEqual(readSent(await send(text)));
    }),
    { numRuns: 15 },
  );
});

test.each([
  ['-u a:b -u my-app:sesame -d grant_type=client_credentials URL/t/token'],
  ['-u my-app:se:sa:me -sSXPOST -dgrant_type=client_credentials -H "X: y" URL/t/token'],
  ['-u other:other -H "Authorization: Basic CREDENTIALS" -d grant_type=client_credentials URL/t/token'],
  ['-u my-app:sesame --data-urlencode scope=a%20b -d grant_type=client_credentials URL/t/token'],
  [
    '-u my-app:sesame --data-urlencode "scope=a b" -d audience=https%3A%2F%2Fa.example%2F -d grant_type=client_credentials URL/t/token',
  ],
  ['-u my-app:sesame -d grant_type=client_credentials -d scope=a+b URL/t/token#fragment'],
  ['--json \'{"grant_type":"client_credentials","client_id":"my-app","client_secret":"ses\\u0061me"}\' URL/t/token'],
  [
    '-d "grant_type=client_credentials&client_id=my-app" -d client_secret=sesame -d tenant=x --compressed -L -o /dev/null URL/t/token',
  ],
  ['-d grant_type=client_credentials http://my-app:s%2Fe@HOST/t/token'],
  ['-u -id:-secret -d grant_type=client_credentials URL/t/token'],
  ["-u $'my-app:\\xc3\\xbc\\u00fc\\n\\'9' -d grant_type=client_credentials URL/t/token"],
  [
    '-u my-app:sesame -H "Authorization:" -d "client_id=i&client_secret=s" -d grant_type=client_credentials URL/t/token',
  ],
])('for curl %s', async (options) => {
  const credentials = Buffer.from('my-app:sesame').toString('base64');
  const text = `curl -s ${options}`
    .replace('CREDENTIALS', credentials)
    .replaceAll('URL', recorder.url)
    .replaceAll('HOST', new URL(recorder.url).host);
  expect(readUnderstood(text)).toEqual(readSent(await send(text)));
});
