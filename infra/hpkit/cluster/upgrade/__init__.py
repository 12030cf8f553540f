"""What of a platform is behind, and the steps that bring it up, each as a change of the stack file."""
