/**
 * A small source tree that breaks every layer rule once, written to disk only while the checker is being checked:
 * kept as files it would trip the type checker and the linter, as it should.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** File -> what it imports. */
const FORBIDDEN_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  'src/main.ts': ['./stray/unlisted.ts'],
  'src/stray/unlisted.ts': [],
  'src/commands/run.ts': ['../main.ts'],
  'src/composition/sidecar.ts': ['../commands/run.ts'],
  'src/listener/server.ts': ['../admin/server.ts'],
  'src/admin/server.ts': ['../sandbox/sandbox.ts'],
  'src/sandbox/sandbox.ts': ['../composition/sidecar.ts'],
  'src/config/config.ts': ['../composition/sidecar.ts'],
  'src/telemetry/log/log.ts': ['../../commands/run.ts'],
  'src/telemetry/events.ts': [],
  'src/exchange/forward.ts': ['../listener/server.ts', '../config/config.ts', '../telemetry/log/log.ts'],
  'src/throttle/throttle.ts': ['../upstream/client.ts'],
  'src/token/token.ts': ['../throttle/throttle.ts'],
  'src/fleet/redis/script-client.ts': ['../../listener/server.ts'],
  'src/retry/loop.ts': ['../token/token.ts', '../platform/errors.ts', '../../tools/tool.ts', 'vitest'],
  'src/upstream/client.ts': ['../exchange/forward.ts'],
  'src/unknown-calls/call-file.ts': ['../exchange/forward.ts'],
  'src/platform/errors.ts': ['../retry/loop.ts', './nowhere.ts', 'node:fs'],
  'tools/tool.ts': [],
  'node_modules/vitest/index.js': [],
};

/** Runs `check` on the fixture's folder, which is gone afterwards. */
export async function withFixture<T>(check: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'layers-fixture-'));
  try {
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', devDependencies: { vitest: '*' } }));
    for (const [file, specifiers] of Object.entries(FORBIDDEN_IMPORTS)) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), specifiers.map((specifier) => `import '${specifier}';\n`).join(''));
    }
    return await check(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
