/**
 * `npm run server-table`: runs every method of client authentication at the real authorization servers that are installed and at the stubs of
 * published shapes, and writes the tables and the settings into docs/authorization-servers.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REAL_SERVERS } from './real-servers.ts';
import type { RealServer } from './real-servers.ts';
import { tryMethods } from './server-methods.ts';
import type { Count, MethodColumn, MethodResult } from './server-methods.ts';
import { SERVER_SHAPES } from './server-shapes.ts';
import type { ServerShape } from './server-shapes.ts';
import { renderProducts, renderServer, renderStubs, replaceSection, SERVER_PAGE } from './server-page.ts';
import type { StubResult } from './server-page.ts';
import { startShapeRoutes } from './shape-routes.ts';
import { formatText } from '../../tools/format-text.ts';

const PATH = join(import.meta.dirname, '..', '..', SERVER_PAGE);

const isComplete = ({ obtained, tried }: Count): boolean => obtained === tried;

function describeResult({ plain, special }: MethodResult): string {
  if (!isComplete(plain)) return 'fails';
  if (special === undefined) return 'works';
  if (isComplete(special)) return 'any secret';
  return special.obtained === 0
    ? 'letters and digits'
    : `${String(special.obtained)} of ${String(special.tried)} secrets`;
}

/** The methods of a server by their results, in one line. */
async function runServer(server: RealServer): Promise<string> {
  const version = server.findVersion();
  const label = `${server.name} ${version ?? ''} (${server.language})`.replace('  ', ' ');
  if (version === undefined) {
    console.error(`${server.name} is not installed: apt-get install ${server.packages.join(' ')}`);
    return `- ${label}: not run`;
  }
  const results = new Map<MethodColumn, string>();
  for (const method of server.methods) {
    // One after the other: a method that fails to start hides no other.
    const tried = await tryMethods(server, [method]).catch((error: unknown) => {
      console.error(`${server.name}, ${method}: ${String(error)}`);
      return undefined;
    });
    for (const result of tried ?? []) results.set(result.column, describeResult(result));
    if (tried === undefined && method !== 'client_secret_basic') results.set(method, 'fails');
  }
  return renderServer(label, results);
}

async function runShape(shape: ServerShape): Promise<StubResult> {
  const { methods, otherMethods, decodesBasic } = shape.request;
  const outcomes: [MethodColumn, 'not run'][] = otherMethods.map((method) => [method, 'not run']);
  const found = new Map<MethodColumn, 'stub' | 'not run' | 'fails'>(outcomes);
  const columnOf = (method: (typeof methods)[number]): MethodColumn =>
    method === 'client_secret_basic' ? `${method}, ${decodesBasic ? 'form' : 'raw'}` : method;
  for (const method of methods) found.set(columnOf(method), 'fails');
  let refusals: Count | undefined;
  try {
    await using running = await startShapeRoutes(shape);
    for (const method of methods) if ((await running.callWith(method)).isObtained) found.set(columnOf(method), 'stub');
    const calls = await Promise.all(shape.refusals.map((refusal) => running.callRefused(refusal)));
    refusals = { obtained: calls.filter(({ isExpected }) => isExpected).length, tried: calls.length };
  } catch (error) {
    console.error(`${shape.name}: ${String(error)}`);
  }
  return { name: shape.name, methods: found, refusals };
}

async function inTurn<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) results.push(await run(item));
  return results;
}

const real = (await inTurn(REAL_SERVERS, runServer)).join('\n');
const stubs = renderStubs(await inTurn(SERVER_SHAPES, runShape));
console.log(`${real}\n\n${stubs}`);
let page = readFileSync(PATH, 'utf8');
for (const [section, text] of Object.entries({ real, stubs, products: renderProducts() }))
  page = replaceSection(page, section, text);
writeFileSync(PATH, await formatText(page, PATH));
process.exitCode = /\bfails\b/.test(real + stubs) ? 1 : 0;
