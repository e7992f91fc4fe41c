/**
 * Client programs that read responses which break off, directly from an API and by the sidecar: a short form of `npm run broken-table`. By the
 * sidecar no program takes a short body for whole that it does not take so from the API itself.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BROKEN_CLIENTS, createBuildFolder } from './broken-responses/clients.ts';
import { readAll, startBrokenSite, type BrokenSite } from './broken-responses/results.ts';

const CLIENTS = ['Java HttpURLConnection', 'commons-httpclient 3.1', 'Python requests', 'Perl LWP', 'Ruby Net::HTTP'];

const running = new AsyncDisposableStack();
let site: BrokenSite;
let folder: string;

beforeAll(async () => {
  site = running.use(await startBrokenSite('broken-responses'));
  ({ folder } = running.use(createBuildFolder()));
});

afterAll(() => running.disposeAsync());

describe('a response that breaks off', () => {
  test.each(CLIENTS)('is an error for %s, at each place and for each framing', async (name) => {
    const client = BROKEN_CLIENTS.find((each) => each.name === name);
    if (client === undefined) throw new Error(`there is no client ${name}`);
    const seen = await readAll(client, folder, site.sidecarUrl);
    expect(seen.filter(({ isDetected }) => !isDetected)).toEqual([]);
    // What a program got before its error depends on the program, and is no more than was sent.
    expect(seen.filter(({ bytes, sent }) => bytes > sent)).toEqual([]);
    const direct = await readAll(client, folder, site.directUrl);
    expect(direct.filter(({ isDetected }) => !isDetected)).toEqual([]);
  });
});
