/** The displayed settings are complete and contain no secret. */
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load/load.ts';
import { formatProblems } from '../../src/config/load/problems.ts';
import { listDisplayedSettings } from '../../src/config/displayed-settings.ts';
import { writeConfigFile } from '../support/config-file.ts';

const FILE = `
upstream: { baseUrl: "https://api.example/v1" }
auth: { url: "https://auth.example", clientId: top-id, clientSecret: top-secret-value, scope: "a b" }
credentials:
  write: { clientId: write-id, clientSecret: write-secret-value }
routes:
  - { name: quotes, pathPrefix: /quotes, throttle: { rate: 5 } }
`;

async function list() {
  await using file = await writeConfigFile(FILE);
  const loaded = loadConfig({
    file: file.path,
    env: { SIDECAR_QUEUE_MAX: '7', SIDECAR_EGRESS_PROXY: 'http://user:proxy-secret-value@proxy.example:3128' },
  });
  if (!loaded.ok) throw new Error(formatProblems(loaded.problems));
  return listDisplayedSettings(loaded);
}

describe('the list of settings', () => {
  it('has every setting with its origin, then the own settings of credentials and routes', async () => {
    const shown = new Map((await list()).map(({ key, ...rest }) => [key, rest]));
    expect(shown.get('upstream.baseUrl')).toMatchObject({ value: 'https://api.example/v1' });
    expect(shown.get('queue.max')).toEqual({ value: '7', origin: 'environment SIDECAR_QUEUE_MAX' });
    expect(shown.get('queue.timeoutMs')).toEqual({ value: '30000', origin: 'default' });
    expect(shown.get('listen.allowedHosts')?.value).toBe('localhost, 127.0.0.1, [::1]');
    expect(shown.get('upstream.caFile')?.value).toBe('none');
    expect([...shown.keys()].slice(-3)).toEqual(['routes[0].name', 'routes[0].pathPrefix', 'routes[0].throttle.rate']);
    expect(shown.get('credentials.write.clientSecret')?.value).toMatch(/^\*+$/);
  });

  it('contains no secret', async () => {
    expect(JSON.stringify(await list())).not.toMatch(/secret-value/);
  });
});
