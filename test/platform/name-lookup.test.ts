/** Look-ups of names, each of which occupies a thread until the name server responds. */
import type { LookupAddress } from 'node:dns';
import { expect, it } from 'vitest';
import { shareLookUps } from '../../src/platform/open-connection.ts';

type Response = PromiseWithResolvers<readonly LookupAddress[]>;

const HERE: LookupAddress = { address: '127.0.0.1', family: 4 };
const HERE_TOO: LookupAddress = { address: '::1', family: 6 };

/** A name server whose responses the test gives, and the look-ups that reached it, in order. */
function openNameServer() {
  const requested: { readonly name: string; readonly response: Response }[] = [];
  const lookUp = shareLookUps((name) => {
    const response: Response = Promise.withResolvers();
    requested.push({ name, response });
    return response.promise;
  });
  return { lookUp, requested, names: () => requested.map(({ name }) => name) };
}

it('a hundred connections to one name share one look-up, and a quick name is not behind three slow ones', async () => {
  const { lookUp, requested, names } = openNameServer();
  const slow = ['one', 'two', 'three'].map((name) => Array.from({ length: 100 }, () => lookUp(name)));
  const quick = lookUp('quick');
  expect(names()).toEqual(['one', 'two', 'three', 'quick']);
  requested[3]?.response.resolve([HERE]);
  expect(await quick).toEqual([HERE]);
  for (const { response } of requested) response.resolve([HERE_TOO]);
  for (const found of await Promise.all(slow.flat())) expect(found).toEqual([HERE_TOO]);
});

it('an response is not kept: the next connection looks the name up again', async () => {
  const { lookUp, requested } = openNameServer();
  const first = lookUp('api');
  requested[0]?.response.resolve([HERE]);
  expect(await first).toEqual([HERE]);
  const next = lookUp('api');
  requested[1]?.response.resolve([HERE_TOO]);
  expect(await next).toEqual([HERE_TOO]);
});

it('a look-up that fails does so for those that wait for it, and not for the next one', async () => {
  const { lookUp, requested } = openNameServer();
  const waiting = [lookUp('api'), lookUp('api')];
  requested[0]?.response.reject(new Error('EAI_AGAIN'));
  expect((await Promise.allSettled(waiting)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const next = lookUp('api');
  requested[1]?.response.resolve([HERE]);
  expect(await next).toEqual([HERE]);
});
