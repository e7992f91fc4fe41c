/** Commands of partners' pages: what the real curl sends is what the sidecar sends with the configuration that init writes. */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { planWithoutQuestions, writePlan } from '../../../../src/commands/init/init.ts';
import { readPartnerText } from '../../../../src/commands/init/partner-text.ts';
import { request } from 'undici';
import { startSidecar } from '../../../../src/composition/sidecar.ts';
import { loadConfig } from '../../../../src/config/load/load.ts';
import { formatProblems } from '../../../../src/config/load/problems.ts';
import { systemClock } from '../../../../src/platform/clock.ts';
import { selectNoProxy } from '../../../../src/platform/egress/proxy-selector.ts';
import { TokenEndpoint } from '../../../../src/token/endpoint/token-endpoint.ts';
import { scratchDirectory } from '../../../config/base-env.ts';
import { createRecordingLog } from '../../../support/recorded-events.ts';
import { startRecordingUpstream } from '../../../support/recording-upstream.ts';
import type { RecordedRequest, RecordingUpstream } from '../../../support/recording-upstream.ts';
import { waitUntil } from '../../../support/until.ts';
import { PARTNER_COMMANDS, REFUSED_COMMANDS } from './partner-commands.ts';

const run = promisify(execFile);
let recorder: RecordingUpstream;
/** What curl sends, in the order of the commands. */
let sentByCurl: readonly RecordedRequest[];

beforeAll(async () => {
  recorder = await startRecordingUpstream((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end('{"access_token":"token-of-the-tests","token_type":"Bearer","expires_in":3600}');
  });
  // One shell for all: a process for each would take most of the time.
  const script = PARTNER_COMMANDS.map(({ text }) => `${withBackslashes(text)} -s`).join('\n');
  await run('bash', ['-c', `set -e\n${script.replaceAll('https://HOST', recorder.url)}`]);
  sentByCurl = [...recorder.requests];
});
afterAll(() => recorder[Symbol.asyncDispose]());

/** As the page meant it, for a command that lost its backslashes. */
function withBackslashes(text: string): string {
  return text.includes('\\\n') ? text : text.replaceAll(/\n--/g, ' \\\n--');
}

/** The requests that arrive meanwhile. */
async function record(send: () => Promise<unknown>): Promise<readonly RecordedRequest[]> {
  const before = recorder.requests.length;
  await send();
  await waitUntil(() => recorder.requests.length > before, 'a request has arrived');
  return recorder.requests.slice(before);
}

/** Fields that every client sets in its own way, or that are compared by themselves. */
const OWN_FIELDS =
  /^(?:host|accept|accept-encoding|authorization|connection|content-length|content-type|sec-fetch-mode|cache-control)$/;
const OWN_AGENT = /^(?:curl|node|bearer-sidecar)\b/;

/** The wire, less what HTTP says means nothing: the order of fields of different names, and a type without a body. */
function describeRequest({ method, path, headers, body }: RecordedRequest) {
  const type = headers['content-type'] ?? '';
  const isForm = type.startsWith('application/x-www-form-urlencoded');
  const extra = Object.entries(headers).filter(
    ([name, value]) => !OWN_FIELDS.test(name) && !(name === 'user-agent' && OWN_AGENT.test(String(value))),
  );
  return {
    method,
    path,
    authorization: headers.authorization,
    type: body.length === 0 ? '' : type.replace(/; *charset=.*$/i, ''),
    fields: isForm
      ? [...new URLSearchParams(body.toString())].toSorted(([one], [other]) => one.localeCompare(other))
      : [],
    json: type.startsWith('application/json') ? (JSON.parse(body.toString()) as unknown) : undefined,
    body: isForm || type.startsWith('application/json') ? '' : body.toString(),
    extra: Object.fromEntries(extra),
  };
}

/** The file that init writes for a command, with the host of the recorder. */
async function writeConfiguration(text: string): Promise<string> {
  const reading = readPartnerText(text);
  if (reading.kind !== 'command') throw new Error(JSON.stringify(reading));
  const output = join(scratchDirectory(), 'sidecar.yaml');
  const settings = new Map(
    reading.command.settings.has('upstream.baseUrl') ? [] : [['upstream.baseUrl', recorder.url] as const],
  );
  await writePlan(
    planWithoutQuestions(
      { settings, output, isForced: false },
      { settings: reading.command.settings, command: reading.command },
    ),
  );
  return output;
}

function load(file: string) {
  const loaded = loadConfig({ file, env: { SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' } });
  if (!loaded.ok) throw new Error(formatProblems(loaded.problems));
  return loaded;
}

async function requestToken(file: string): Promise<void> {
  const [credential] = load(file).config.credentials;
  if (credential === undefined || credential.auth.endpoint.kind === 'file') throw new Error('no token is requested');
  const { auth } = credential;
  const fixed = { egress: selectNoProxy, clock: systemClock, observe: () => undefined };
  const endpoint = new TokenEndpoint({ ...auth, ...fixed, endpoint: credential.auth.endpoint });
  const client = await endpoint.readCredential();
  if (client.kind === 'unreadable') throw new Error(client.detail);
  expect(await endpoint.request(client, new AbortController().signal)).toMatchObject({ kind: 'ok' });
}

/** Calls the API through a sidecar, as an application that has no credential. */
async function callThrough(file: string, { method, path, body, headers }: RecordedRequest): Promise<void> {
  const loaded = load(file);
  const config = { ...loaded.config, shutdown: { ...loaded.config.shutdown, drainMs: 1 } };
  const log = createRecordingLog();
  const sidecar = await startSidecar({ config, version: '0.0.0', log, source: { loaded, load: undefined } });
  const type = headers['content-type'];
  const options = { method, headers: type === undefined ? {} : { 'content-type': type } };
  const response = await request(sidecar.proxyUrl + path, { ...options, body: method === 'GET' ? null : body });
  await response.body.dump();
  await sidecar.drain();
}

describe('a command of the page of', () => {
  test.each(PARTNER_COMMANDS.map((command, index) => ({ ...command, index })))('$partner ($kind)', async (printed) => {
    const { kind, text, index } = printed;
    expect(sentByCurl).toHaveLength(PARTNER_COMMANDS.length);
    const sent = sentByCurl[index];
    if (sent === undefined) throw new Error('curl has sent nothing');
    const output = await writeConfiguration(text.replaceAll('https://HOST', recorder.url));
    const [own] = await record(() => (kind === 'token' ? requestToken(output) : callThrough(output, sent)));
    if (own === undefined) throw new Error('the sidecar has sent nothing');
    const expected = describeRequest(sent);
    const isPlaceholder = expected.authorization?.startsWith('Bearer <');
    expect(describeRequest(own)).toEqual(isPlaceholder ? { ...expected, authorization: undefined } : expected);
  });
});

test.each(REFUSED_COMMANDS)('%s is named in one sentence: %s', (_, named, text) => {
  const reading = readPartnerText(text);
  if (!('fault' in reading)) throw new Error('understood');
  expect(reading.fault).toMatch(named);
});

test('a credential in header fields goes into files of their own', async () => {
  const output = await writeConfiguration(
    `curl -X POST ${recorder.url}/v1/token -H 'client_id: client-1' -H 'client_secret: sesame-open'`,
  );
  const folder = join(output, '..');
  expect(readdirSync(folder).toSorted()).toEqual(['sidecar.client_secret', 'sidecar.yaml']);
});
