/** The configuration in /status. */
import { describe, expect, it } from 'vitest';
import { describeReloadFault } from '../../../src/admin/status/readiness.ts';
import type { ConfigurationState } from '../../../src/admin/status/states.ts';
import { describeConfiguration, describeStatus } from '../../../src/admin/status/status.ts';
import { healthy, unpaced, validToken } from '../states.ts';

const loadedWallAt = Date.UTC(2026, 10, 1);

function after(outcome: 'ok' | 'refused' | 'invalid', lines: readonly string[]): ConfigurationState {
  return { loadedWallAt, isReloadable: true, lastReload: { wallAt: loadedWallAt + 1500, outcome, lines } };
}

describe('the configuration', () => {
  it('shows when it was loaded and the outcome of the last reload', () => {
    const loadedAt = '2026-11-01T00:00:00.000Z';
    expect(describeConfiguration({ loadedWallAt, isReloadable: false, lastReload: undefined })).toEqual({
      loadedAt,
      reloadable: false,
      lastReload: null,
    });
    const at = '2026-11-01T00:00:01.500Z';
    expect(describeConfiguration(after('ok', ['a: 1 → 2', 'b: 3 → 4']))).toEqual({
      loadedAt,
      reloadable: true,
      lastReload: { at, outcome: 'ok', detail: 'a: 1 → 2; b: 3 → 4' },
    });
    expect(describeConfiguration(after('ok', []))?.lastReload?.detail).toBe('nothing has changed');
    expect(describeConfiguration(undefined)).toBeNull();
  });

  it('is a warning when the file could not be reloaded', () => {
    expect(describeReloadFault(after('ok', ['a: 1 → 2']))).toEqual([]);
    expect(describeReloadFault(after('refused', ['a', 'b']))).toEqual([
      expect.stringMatching(/a restart is needed for: a; b$/),
    ]);
    const states = {
      version: '1',
      verdict: healthy,
      alerts: [],
      uptimeMs: 0,
      draining: false,
      tokens: [validToken],
      throttles: [unpaced],
    };
    const { degraded, configuration } = describeStatus({ ...states, configuration: after('invalid', ['a: no']) });
    expect(degraded).toEqual([expect.stringMatching(/it is invalid: a: no$/)]);
    expect(configuration?.lastReload?.outcome).toBe('invalid');
  });
});
