/** The last calls, as /status and the page of a whole sidecar show them: no query, no header field, no body, and only where it is wanted. */
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { startInProcess } from './in-process.ts';
import type { InProcess } from './in-process.ts';

const SECRET = 'name-of-a-person';

async function readAll({ sidecar }: InProcess): Promise<string> {
  const texts = await Promise.all(['/status', '/'].map(async (path) => (await fetch(sidecar.adminUrl + path)).text()));
  return texts.join('\n');
}

async function callWithTarget(url: string, target: string): Promise<void> {
  const { hostname, port, host } = new URL(url);
  const headers = { host, 'x-person': SECRET, authorization: `Bearer ${SECRET}` };
  const sent = request({ hostname, port, path: target, method: 'POST', headers, agent: false });
  sent.end(JSON.stringify({ person: SECRET }));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
}

describe('the recent calls of a sidecar', () => {
  it('hold the path, and nothing else that the client sent', async () => {
    const running = await startInProcess();
    const { host } = new URL(running.url);
    const targets = [
      `/kept/1?name=${SECRET}`,
      `/kept/2?${SECRET}#${SECRET}`,
      `/kept/3#${SECRET}`,
      `http://${host}/kept/4?${SECRET}`,
      `http://${SECRET}:${SECRET}@${host}/kept/5`,
      `?${SECRET}`,
    ];
    for (const target of targets) await callWithTarget(running.url, target);
    await running.requestRecords(targets.length);
    const shown = await readAll(running);
    for (const number of [1, 2, 3, 4]) expect(shown).toContain(`/kept/${number}`);
    expect(shown).not.toContain(SECRET);
  });

  it.each<[Record<string, string>, boolean]>([
    [{}, true],
    [{ SIDECAR_ADMIN_RECENT_CALLS: 'false' }, false],
    [{ SIDECAR_ADMIN_EXPOSE_ALL: 'true' }, false],
    [{ SIDECAR_ADMIN_EXPOSE_ALL: 'true', SIDECAR_ADMIN_RECENT_CALLS: 'true' }, true],
  ])('with %j are kept: %s', async (env, isKept) => {
    const running = await startInProcess({ env });
    await callWithTarget(running.url, '/kept/1');
    await running.requestRecords(1);
    expect((await readAll(running)).includes('/kept/1')).toBe(isKept);
  });
});
