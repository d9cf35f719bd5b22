// Starts the program that its first argument names, as OpenShift's image of the same name does.
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 2) {
        fputs("hyperkube: name the component to start\n", stderr);
        return 2;
    }
    execvp(words[1], words + 1);
    perror(words[1]);
    return 127;
}
