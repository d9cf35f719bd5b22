// Holds a pod's namespaces: waits for a signal to stop, and reaps what is left to it meanwhile.
// With -v it ends at once, as Kubernetes' does: `kubeadm upgrade` checks with it that Jobs work.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void stop(int signal) {
    (void)signal;
    _exit(0);
}

static void reap(int signal) {
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], "-v") == 0) {
        puts("pause of the sandbox");
        return 0;
    }
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    signal(SIGCHLD, reap);
    for (;;) {
        pause();
    }
}
