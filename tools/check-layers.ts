/**
 * Checks the layers of src/ (tools/layers/rules.ts) and, first, the checker itself: a fixture breaks every rule once,
 * and a rule that stays silent there, or a cruise that read fewer modules than there are files, is a failure.
 * A checker that reads nothing finds nothing wrong.
 */
import { cruise } from 'dependency-cruiser';
import type { ICruiseResult } from 'dependency-cruiser';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { withFixture } from './layers/fixture.ts';
import { PURE_FILES } from './layers/pure-files.ts';
import { LAYER_RULES } from './layers/rules.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

async function readModules(baseDir: string): Promise<ICruiseResult> {
  const expected = globSync('src/**/*.ts', { cwd: baseDir }).length;
  const options = {
    baseDir,
    ruleSet: LAYER_RULES,
    validate: true,
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
  };
  // Without these it reads no package whose entry points are an exports map alone.
  const resolving = { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] };
  const { output } = await cruise(['src'], options, resolving);
  if (typeof output === 'string') throw new Error('dependency-cruiser returned text instead of its result');
  const read = output.modules.filter((module) => module.source.startsWith('src/') && !module.couldNotResolve).length;
  if (expected === 0 || read < expected)
    throw new Error(
      `${baseDir}: ${String(read)} modules were read, ${String(expected)} are there: this check is blind`,
    );
  return output;
}

function silentRules(result: ICruiseResult): string[] {
  const heard = new Set(result.summary.violations.map((violation) => violation.rule.name));
  return (LAYER_RULES.forbidden ?? []).map((rule) => rule.name ?? '').filter((name) => !heard.has(name));
}

const silent = silentRules(await withFixture(readModules));
for (const name of silent) console.error(`layers: the fixture breaks "${name}", yet the rule stays silent`);

const stale = PURE_FILES.filter((glob) => globSync(glob, { cwd: ROOT }).length === 0);
for (const glob of stale) console.error(`layers: no file is ${glob}, which is listed as pure`);

const { summary } = await readModules(ROOT);
for (const { from, to, rule } of summary.violations) console.error(`layers: ${from} -> ${to} breaks "${rule.name}"`);

const failed = silent.length + stale.length + summary.violations.length > 0;
if (!failed) console.log(`layers: ${String(summary.totalCruised)} modules keep them, and every rule can fail`);
process.exitCode = failed ? 1 : 0;
