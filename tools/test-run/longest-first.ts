/**
 * The order of the test files: by project, because vitest ends a shared process when a file of another project comes between. Those that take
 * longest are started first, so that none of them runs alone at the end.
 */
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { LONGEST_TESTS } from './longest-tests.ts';

const PROJECTS = ['own-process', 'system', 'unit'];

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => this.#rank(one) - this.#rank(other));
  }

  #rank({ project, moduleId }: TestSpecification): number {
    const place = LONGEST_TESTS.indexOf(relative(this.ctx.config.root, moduleId));
    return PROJECTS.indexOf(project.name) * (LONGEST_TESTS.length + 1) + (place < 0 ? LONGEST_TESTS.length : place);
  }
}
