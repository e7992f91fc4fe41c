/**
 * Loaded into the sidecar before its program (`node --import`): every function of src/ that has a body reports each of its calls.
 * Functions, methods, accessors, constructors and arrow functions count. The parent process starts and ends a recording by IPC messages, and
 * stops the clock before: what a request finds, such as a batch of log lines that is open, then does not depend on the speed of the machine.
 */
import { registerHooks } from 'node:module';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import type { RecordedCalls, RecordingCommand, TracedFunction } from './recorded-calls.ts';

/** The global function that instrumented code calls. */
const RECORDER = '__recordCall';
const SOURCES = new URL('../../../src/', import.meta.url).href;

const functions: TracedFunction[] = [];
let calls: number[] | undefined;

(globalThis as Record<string, unknown>)[RECORDER] = (id: number): void => void calls?.push(id);

registerHooks({
  load(url, context, nextLoad) {
    if (!url.startsWith(SOURCES) || !url.endsWith('.ts')) return nextLoad(url, context);
    const file = url.slice(SOURCES.length);
    return { format: 'module', source: instrument(file, readFileSync(fileURLToPath(url), 'utf8')), shortCircuit: true };
  },
});

const { setTimeout: startTimer, clearTimeout: cancelTimer, setInterval: startInterval } = globalThis;
const SECOND_MS = 1000;
/** Of a stopped clock, at each reading: nothing takes no time at all. */
const STEP_MS = 0.25;
const readClock = performance.now.bind(performance);
/** How far the clock is ahead of the machine's: it never goes back. */
let aheadMs = 0;
let stoppedAt: number | undefined;
/** What became due while the clock stood still. */
const dueTimers = new Map<unknown, () => void>();

performance.now = () => (stoppedAt === undefined ? readClock() + aheadMs : (stoppedAt += STEP_MS));
Date.now = () => Math.floor(performance.timeOrigin + performance.now());
globalThis.setTimeout = ((run: (...args: unknown[]) => void, delayMs?: number, ...args: unknown[]) => {
  const timer = startTimer(() => {
    if (stoppedAt === undefined) run(...args);
    else dueTimers.set(timer, () => run(...args));
  }, delayMs);
  return timer;
}) as typeof setTimeout;
globalThis.clearTimeout = (timer) => {
  dueTimers.delete(timer);
  cancelTimer(timer);
};

globalThis.setInterval = ((run: () => void, delayMs?: number) =>
  startInterval(() => {
    if (stoppedAt === undefined) run();
  }, delayMs)) as typeof setInterval;

/** Stands still at the beginning of a second, the next one if it stands already. */
function stopClock(): void {
  stoppedAt = Math.ceil(performance.now() / SECOND_MS) * SECOND_MS;
}

/** Within the same second, when a rate of two calls a second has room for the next one. */
function moveClock(): void {
  if (stoppedAt !== undefined) stoppedAt += SECOND_MS / 2;
}

function startClock(): void {
  aheadMs = Math.max(aheadMs, (stoppedAt ?? 0) - readClock());
  stoppedAt = undefined;
  for (const [timer, run] of dueTimers) {
    dueTimers.delete(timer);
    run();
  }
}

process.on('message', (message: RecordingCommand) => {
  if (message === 'stop-clock') stopClock();
  if (message === 'start') {
    moveClock();
    calls = [];
  }
  const recorded: RecordedCalls = { functions, calls: calls ?? [] };
  if (message === 'stop') calls = undefined;
  if (message === 'start-clock') startClock();
  process.send?.(message === 'stop' ? recorded : message);
});

/** The source as JavaScript, in which each function with a body begins with a report of its call. */
function instrument(file: string, source: string): string {
  const { outputText } = ts.transpileModule(source, {
    fileName: file,
    compilerOptions: { target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
    transformers: { before: [(context) => (root) => visitFile(file, root, context)] },
  });
  return outputText;
}

function visitFile(file: string, root: ts.SourceFile, context: ts.TransformationContext): ts.SourceFile {
  const { factory } = context;
  const report = (node: ts.Node): ts.Expression => {
    const { line } = root.getLineAndCharacterOfPosition(node.getStart(root));
    const id = functions.push({ file, name: nameOf(node), line: line + 1 }) - 1;
    return factory.createCallExpression(factory.createIdentifier(RECORDER), undefined, [
      factory.createNumericLiteral(id),
    ]);
  };
  const visit = (node: ts.Node): ts.Node => {
    const reported = ts.isFunctionLike(node) && 'body' in node && node.body !== undefined ? report(node) : undefined;
    const inner = ts.visitEachChild(node, visit, context);
    return reported === undefined ? inner : withReport(factory, inner, reported);
  };
  return ts.visitEachChild(root, visit, context);
}

function withReport(factory: ts.NodeFactory, node: ts.Node, report: ts.Expression): ts.Node {
  if (ts.isArrowFunction(node) && !ts.isBlock(node.body)) {
    const body = factory.createParenthesizedExpression(factory.createCommaListExpression([report, node.body]));
    const { modifiers, typeParameters, parameters, type, equalsGreaterThanToken } = node;
    return factory.updateArrowFunction(node, modifiers, typeParameters, parameters, type, equalsGreaterThanToken, body);
  }
  const body = (node as ts.FunctionLikeDeclaration).body as ts.Block;
  const statements = [factory.createExpressionStatement(report), ...body.statements];
  // A constructor of a derived class may call anything before super(), as long as it does not touch `this`.
  return replaceBody(factory, node, factory.updateBlock(body, statements));
}

function replaceBody(factory: ts.NodeFactory, node: ts.Node, body: ts.Block): ts.Node {
  if (ts.isFunctionDeclaration(node))
    return factory.updateFunctionDeclaration(
      ...([node, node.modifiers, node.asteriskToken, node.name, node.typeParameters] as const),
      ...([node.parameters, node.type, body] as const),
    );
  if (ts.isFunctionExpression(node))
    return factory.updateFunctionExpression(
      ...([node, node.modifiers, node.asteriskToken, node.name, node.typeParameters] as const),
      ...([node.parameters, node.type, body] as const),
    );
  if (ts.isArrowFunction(node))
    return factory.updateArrowFunction(
      ...([node, node.modifiers, node.typeParameters, node.parameters, node.type] as const),
      ...([node.equalsGreaterThanToken, body] as const),
    );
  if (ts.isMethodDeclaration(node))
    return factory.updateMethodDeclaration(
      ...([node, node.modifiers, node.asteriskToken, node.name, node.questionToken] as const),
      ...([node.typeParameters, node.parameters, node.type, body] as const),
    );
  if (ts.isConstructorDeclaration(node))
    return factory.updateConstructorDeclaration(node, node.modifiers, node.parameters, body);
  if (ts.isGetAccessorDeclaration(node))
    return factory.updateGetAccessorDeclaration(node, node.modifiers, node.name, node.parameters, node.type, body);
  if (ts.isSetAccessorDeclaration(node))
    return factory.updateSetAccessorDeclaration(node, node.modifiers, node.name, node.parameters, body);
  throw new Error(`a function of an unknown kind: ${ts.SyntaxKind[node.kind]}`);
}

function nameOf(node: ts.Node): string {
  const { name } = node as { name?: ts.Node };
  const own = name === undefined ? (ts.isConstructorDeclaration(node) ? 'constructor' : '') : textOf(name);
  const { parent } = node;
  if (ts.isClassLike(parent)) return `${parent.name?.text ?? 'class'}.${own}`;
  if (own === '' && (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent))) return textOf(parent.name);
  return own === '' ? '(anonymous)' : own;
}

function textOf(node: ts.Node): string {
  return ts.isIdentifier(node) || ts.isPrivateIdentifier(node) || ts.isStringLiteral(node) ? node.text : '(computed)';
}
