/** Every method of client authentication at the real authorization servers of npm; `npm run server-table` tries those of Debian as well. */
import { describe, expect, test } from 'vitest';
import { REAL_SERVERS } from './real-servers.ts';
import { tryMethods } from './server-methods.ts';

const ofNpm = REAL_SERVERS.filter(({ packages }) => packages.length === 0);

describe.each(ofNpm.map((server) => [server.name, server] as const))('%s', (_, server) => {
  test('secrets of any characters: in the form always, in Basic when the encoding is that of the server', async () => {
    const methods = server.methods.filter((method) => method.startsWith('client_secret'));
    const all = (tried: number) => ({ obtained: tried, tried });
    const none = (tried: number) => ({ obtained: 0, tried });
    expect(await tryMethods(server, methods)).toEqual([
      { column: 'client_secret_basic, raw', plain: all(1), special: server.decodesBasic ? none(6) : all(6) },
      { column: 'client_secret_basic, form', plain: all(1), special: server.decodesBasic ? all(6) : none(6) },
      { column: 'client_secret_post', plain: all(1), special: all(6) },
    ]);
  });

  test.each(server.methods.filter((method) => !method.startsWith('client_secret')))(
    '%s obtains a token',
    async (method) => {
      expect(await tryMethods(server, [method])).toMatchObject([{ plain: { obtained: 1, tried: 1 } }]);
    },
  );
});
