/** Which responses are evidence for a rate limit that no setting names, and that they are passed on as before. */
import { expect, it } from 'vitest';
import { startInProcess } from '../composition/in-process.ts';
import { send } from '../composition/send.ts';
import { echo } from '../support/recording-upstream.ts';

it.each([403, 420, 503, 509, 529])('a bare %s goes to the client after one attempt, and is counted', async (status) => {
  const { url, api, eventsOf } = await startInProcess({
    respond: (request, response, index) =>
      index === 0 ? void response.writeHead(status).end() : echo(request, response, index),
  });
  expect((await send(url, { method: 'POST', body: 'x' })).status).toBe(status);
  expect(api.requests).toHaveLength(1);
  expect(eventsOf('unconfigured-refusal')).toEqual([{ kind: 'unconfigured-refusal', route: 'default', status }]);
  expect(eventsOf('rate-limited')).toEqual([]);
});

it.each([
  [503, { 'retry-after': '1' }],
  [403, { 'www-authenticate': 'Bearer error="insufficient_scope"' }],
  [500, {}],
  [404, {}],
  [200, {}],
])('a %s with %j is not counted', async (status, headers) => {
  const { url, eventsOf } = await startInProcess({
    respond: (_, response) => void response.writeHead(status, headers).end(),
  });
  await send(url, { method: 'POST', body: 'x' });
  expect(eventsOf('unconfigured-refusal')).toEqual([]);
});
