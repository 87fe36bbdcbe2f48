/** The classes of mongo-java-server and of the small program around it, had by Maven and compiled with a JDK. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Built, builtOnce, runTool } from '@penstock/testkit';

const SOURCES = fileURLToPath(new URL('../../../../test/support/mongodb-java/', import.meta.url));
const POM = join(SOURCES, 'pom.xml');
const PROGRAM = join(SOURCES, 'TestServer.java');
const COPY_DEPENDENCIES = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
/** Of the class files; an older JDK refuses it. */
const JAVA_RELEASE = '17';

/** Where `java` finds everything. */
export function classPathOf(folder: string): string {
  return `${join(folder, 'classes')}:${join(folder, 'lib', '*')}`;
}

export function javaServer(maven: string, javac: string, env: NodeJS.ProcessEnv): Promise<Built> {
  return builtOnce({
    name: 'mongodb-java',
    sources: [POM, PROGRAM],
    output: 'server',
    env,
    async make(output) {
      const libraries = join(output, 'lib');
      const had = await runTool(maven, ['-B', '-q', '-f', POM, COPY_DEPENDENCIES, `-DoutputDirectory=${libraries}`], {
        env,
      });
      if (had !== null) return `mvn ${had}`;
      const argv = ['--release', JAVA_RELEASE, '-cp', join(libraries, '*'), '-d', join(output, 'classes'), PROGRAM];
      const compiled = await runTool(javac, argv, { env });
      return compiled === null ? null : `javac ${compiled}`;
    },
  });
}
