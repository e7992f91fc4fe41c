/**
 * Which source may import which. Arrows run one way: main -> commands -> sidecar -> listener, admin, sandbox -> exchange,
 * fleet -> throttle, token, retry, upstream, unknown-calls -> platform, telemetry/events; siblings never import each other.
 * tools/check-layers.ts applies these rules to src/ and shows on a fixture that each of them can fail.
 */
import type { IFlattenedRuleSet } from 'dependency-cruiser';
import { PURE_FILES } from './pure-files.ts';

type Rule = NonNullable<IFlattenedRuleSet['forbidden']>[number];

/** Left to right; a file may import from its own group and from those to its right. */
const LAYERS: readonly (readonly string[])[] = [
  ['^src/main\\.ts$'],
  ['^src/commands/'],
  ['^src/composition/'],
  [
    '^src/listener/',
    '^src/admin/',
    '^src/sandbox/',
    '^src/config/',
    '^src/telemetry/(?!(?:events|event-texts|request-record)\\.ts$)',
  ],
  ['^src/exchange/', '^src/fleet/'],
  ['^src/throttle/', '^src/token/', '^src/retry/', '^src/upstream/', '^src/unknown-calls/'],
  ['^src/platform/|^src/telemetry/(?:events|event-texts|request-record)\\.ts$'],
];

function* createRules(): Generator<Rule> {
  for (const [depth, groups] of LAYERS.entries()) {
    const right = LAYERS.slice(depth + 1).flat();
    for (const group of groups) {
      yield {
        name: `one-way: ${group}`,
        severity: 'error',
        comment: 'imports go to the right only, and never to a sibling',
        from: { path: group },
        to: { path: '^src/', pathNot: [group, ...right] },
      };
    }
  }
  yield {
    name: 'config-stays-at-the-top',
    severity: 'error',
    comment: 'parts state the options they need; the composition root hands them over',
    from: { path: '^src/', pathNot: ['^src/main\\.ts$', '^src/commands/', '^src/composition/', '^src/config/'] },
    to: { path: '^src/config/' },
  };
  yield {
    name: 'metrics-and-log-stay-at-the-top',
    severity: 'error',
    comment: 'parts emit events; composition/ connects the listeners',
    from: {
      path: '^src/',
      pathNot: ['^src/main\\.ts$', '^src/commands/', '^src/composition/', '^src/telemetry/'],
    },
    to: { path: '^src/telemetry/(?!(?:events|event-texts|request-record)\\.ts$)' },
  };
  yield {
    name: 'pure-stays-pure',
    severity: 'error',
    comment: 'a pure file gets time, chance and input as arguments',
    from: { path: PURE_FILES.map(globToPattern) },
    to: { dependencyTypes: ['core'] },
  };
  yield {
    name: 'no-circle',
    severity: 'error',
    comment: 'two files that import each other are one file, or three',
    from: { path: '^src/' },
    to: { circular: true },
  };
  yield {
    name: 'src-stands-alone',
    severity: 'error',
    comment: 'what is published needs neither the tests, the tools nor a development dependency',
    from: { path: '^src/' },
    to: { path: '^(test|tools)/', dependencyTypesNot: ['core'] },
  };
  yield {
    name: 'no-development-dependency',
    severity: 'error',
    comment: 'a development dependency is not there when the package is installed',
    from: { path: '^src/' },
    to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
  };
  yield {
    name: 'resolvable',
    severity: 'error',
    comment: 'an import that cannot be resolved is not checked',
    from: { path: '^src/' },
    to: { couldNotResolve: true },
  };
}

/** Knows `*` and one level of `{a,b}`, which is what the list uses. */
function globToPattern(glob: string): string {
  const pattern = glob
    .replaceAll('.', '\\.')
    .replaceAll('*', '[^/]*')
    .replaceAll(/\{([^}]*)\}/g, (_, names: string) => `(?:${names.replaceAll(',', '|')})`);
  return `^${pattern}$`;
}

/** The rule set, as dependency-cruiser takes it. */
export const LAYER_RULES: IFlattenedRuleSet = { forbidden: [...createRules()] };
